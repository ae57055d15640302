"""Certificates: what a schedule claims, with what is needed to check it without the search.

A certificate is a JSON object: the graph's digest, the order with its peak, the lower bound and its
proof (``docs/search.md`` lists the kinds). The checker recomputes everything from the graph:

* the order's peak, by the checker of ``check.py``;
* *start*, *end*, *op*, *forced-op*: the sum in question;
* *root-cut*, and *window* with an op or with branches: the minimum cuts, by networkx;
* *window* and *exhausted*: that the relaxed instance over the ops in question, built anew from its
  definition, has no order within the budget: by visiting all states that the budget allows,
  without any rule, or if they are too many by the reference search. The verdict says which.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tvm_serenity.errors import CheckError, InputError
from tvm_serenity.graph import Graph, Op
from tvm_serenity.schedule.check import naive_peak
from tvm_serenity.schedule.least_cut import least_need, least_of_branches, related
from tvm_serenity.schedule.problem import Problem, peak_of, problem_of
from tvm_serenity.schedule.reference import Core
from tvm_serenity.schedule.result import Schedule
from tvm_serenity.schedule.storages import relaxed_storages, storages_of
from tvm_serenity.search.outcome import Outcome

FORMAT = "tvm-serenity order certificate 1"
CUT = "minimum cut recomputed"
NAIVE_OPS = 500
"""Up to so many ops the naive checker computes the peak, beyond it ``peak_of``."""


@dataclass(frozen=True)
class Confirmed:
    """What was confirmed: the order's peak always; the bound if ``bound_checked``, and ``how``."""

    peak_bytes: int
    lower_bound_bytes: int
    bound_checked: bool
    how: str


def certificate(graph: Graph, found: Schedule) -> dict[str, Any]:
    """The certificate of a schedule of ``graph``, ready for ``json.dump``."""
    proof = found.statistics.get("proof")
    if not isinstance(proof, Mapping):
        raise InputError(f"method {found.method!r} gives no proof to certify; 'exact' does")
    return {
        "format": FORMAT,
        "graph": graph.name,
        "graph_sha256": digest(graph),
        "method": found.method,
        "outcome": str(found.outcome),
        "order": list(found.order),
        "peak_bytes": found.peak_bytes,
        "lower_bound_bytes": found.lower_bound_bytes,
        "proof": dict(proof),
        "states": found.states,
    }


def digest(graph: Graph) -> str:
    """A hash of all that decides the peak of an order."""
    parts = (
        [(t.size_bytes, str(t.role)) for t in graph.tensors],
        [_deciding(op) for op in graph.ops],
        graph.inputs,
        graph.outputs,
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _deciding(op: Op) -> tuple[object, ...]:
    known = (op.inputs, op.outputs, op.workspace_bytes, op.view_of, op.in_place)
    return (*known, op.over, op.over_bytes) if op.over else known


def check_certificate(graph: Graph, claims: Mapping[str, Any], states: int = 200_000) -> Confirmed:
    """Confirm a certificate of ``graph``, or raise :class:`CheckError` with what is wrong.

    ``states`` limits each way of re-solving; a bound that neither settles within it is returned
    as not checked.
    """
    try:
        order, peak, bound = claims["order"], claims["peak_bytes"], claims["lower_bound_bytes"]
        proof, outcome = claims["proof"], claims["outcome"]
        if claims["format"] != FORMAT:
            raise CheckError(f"not a certificate in the format {FORMAT!r}")
        if claims["graph_sha256"] != digest(graph):
            raise CheckError(f"{graph.name}: the certificate is for another graph")
        _check_order(graph, order, peak)
        if bound > peak or (outcome == Outcome.OPTIMAL and bound != peak):
            raise CheckError(f"bound {bound} and peak {peak} do not fit the outcome {outcome!r}")
        if int(proof.get("budget_bytes", -1)) >= peak:
            raise CheckError(f"{graph.name}: the order itself is within the proof's budget")
        problem = problem_of(graph)
        proved, how = _proved(problem, dict(proof), bound, states)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise CheckError(f"{graph.name}: not a well-formed certificate ({error!r})") from error
    if proved is not None and proved < bound:
        raise CheckError(f"{graph.name}: the proof gives a bound of {proved}, not {bound}")
    return Confirmed(peak, bound, proved is not None, how)


def _check_order(graph: Graph, order: list[int], peak: int) -> None:
    if sorted(order) != list(range(len(graph.ops))):
        raise CheckError(f"{graph.name}: the order does not hold every op exactly once")
    if len(graph.ops) <= NAIVE_OPS:
        found = naive_peak(graph, order)
    else:
        position = {op: step for step, op in enumerate(order)}
        for op, before in enumerate(graph.predecessors):
            if any(position[other] > position[op] for other in before):
                raise CheckError(f"{graph.name}: op {graph.ops[op].name!r} runs too early")
        problem = problem_of(graph)
        number = {op: i for i, op in enumerate(problem.ops)}
        found = peak_of(problem, [number[op] for op in order if op in number])
    if found != peak:
        raise CheckError(f"{graph.name}: the order needs {found} bytes, not {peak}")


def _proved(
    problem: Problem, proof: dict[str, Any], bound: int, states: int
) -> tuple[int | None, str]:
    """The bound that the proof gives, or None if that takes too long; and how it was confirmed."""
    number = {op: i for i, op in enumerate(problem.ops)}
    match proof["kind"]:
        case "start":
            return problem.start_bytes, "live at the start"
        case "end":
            return problem.end_bytes, "live at the end"
        case "op":
            own = _own_need(problem, number[proof["op"]])
            if own >= bound:
                return own, "what the op makes and reads"
            # What is live throughout its part is needed as well; the cut counts it.
            return _least(problem, number[proof["op"]], bound), CUT
        case "forced-op":
            return _forced_need(problem, number[proof["op"]]), "the state before it recomputed"
        case "root-cut":
            return _least(problem, number[proof["op"]], bound), CUT
        case "window":
            ops = [number[op] for op in proof["ops"]]
        case "exhausted":
            first, last = proof.get("part", (problem.ops[0], problem.ops[-1]))
            ops = list(range(number[first], number[last] + 1))
        case kind:
            raise CheckError(f"unknown kind of proof {kind!r}")
    return _window(problem, proof, sorted(ops), states)


def _window(
    problem: Problem, proof: dict[str, Any], chosen: list[int], states: int
) -> tuple[int | None, str]:
    """The same of a proof over some of the problem's ops."""
    local = {problem.ops[op]: i for i, op in enumerate(chosen)}
    budget = int(proof["budget_bytes"])
    relaxed = relaxed_storages(problem, chosen)
    budget_within = budget - _always_live(problem)
    at = local[proof["op"]] if "op" in proof else None
    if at is not None and least_need(relaxed, at, budget_within + 1) > budget_within:
        return budget + 1, CUT  # its cut alone is above the budget
    if "branches" in proof:
        branches = [[local[op] for op in step] for step in proof["branches"]]
        need = least_of_branches(relaxed, branches, budget_within + 1)
        return need + budget - budget_within, f"{CUT}, {len(branches)} branches"
    core = Core(*relaxed, True, True, True)
    feasible = _visit_all(core, budget_within, states)
    how = "all states within the budget visited"
    if feasible is None:
        status = core.decide(budget_within, states, 1e9, 2**62, None)[0]
        feasible = {"feasible": True, "infeasible": False}.get(status)
        how = "re-solved by the reference search"
    if feasible:
        raise CheckError(f"the proof is wrong: {budget} bytes are enough for the ops it names")
    if feasible is None:
        return None, f"not settled within {states} states"
    return budget + 1, how


def _always_live(problem: Problem) -> int:
    rows = zip(problem.sizes, problem.producer, problem.kept, strict=True)
    return sum(size for size, made, kept in rows if made < 0 and kept)


def _least(problem: Problem, op: int, bound: int) -> int:
    return least_need(storages_of(problem), op, bound)


def relaxed_over(problem: Problem, chosen: list[int]) -> Core:
    """The searches on the instance that rule R9 makes of some ops; all ops: the instance."""
    return Core(*relaxed_storages(problem, chosen), True, True, True)


def _visit_all(core: Core, budget: int, states: int) -> bool | None:
    """Whether an order fits the budget, by all states it allows; None if they are too many."""
    rows = list(zip(core.sizes, core.maker_mask, core.reader_mask, strict=True))

    def live(done: int) -> int:
        return sum(s for s, p, c in rows if (not p or p & done) and (not c or c & ~done))

    level, seen = {0}, 1
    for _ in range(core.count):
        following: set[int] = set()
        for done in level:
            now = live(done)
            for op in range(core.count):
                if done >> op & 1 or core.ancestors[op] & ~done:
                    continue
                after = done | 1 << op
                need = now + core.workspace[op]
                need += sum(s for s, p, _ in rows if p >> op & 1 and not p & done)
                if any(not core.reader_mask[t] & ~after for t in core.in_place[op]):
                    need -= core.takeover[op]
                if need <= budget:
                    following.add(after)
            if seen + len(following) > states // 20:
                return None
        level = following
        seen += len(level)
    return bool(level)


def _credit(problem: Problem, op: int) -> int:
    return problem.takeover[op]


def _own_need(problem: Problem, op: int) -> int:
    touched = sum(problem.sizes[t] for t in {*problem.inputs[op], *problem.outputs[op]})
    always = {t for t, made in enumerate(problem.producer) if made < 0 and problem.kept[t]}
    always -= set(problem.inputs[op])
    beside = sum(problem.sizes[t] for t in always)
    return touched + problem.workspace[op] - _credit(problem, op) + beside


def _forced_need(problem: Problem, op: int) -> int:
    """The need at an op that is comparable to all others."""
    above, below = related(problem.predecessors, op)
    if len(above) + len(below) + 1 != problem.count:
        raise CheckError(f"op {problem.ops[op]} is not comparable to all others")
    live = 0
    for t, size in enumerate(problem.sizes):
        there = problem.producer[t] < 0 or problem.producer[t] in above
        wanted = problem.kept[t] or not above.issuperset(problem.consumers[t])
        live += size if there and wanted else 0
    dies = any(
        not problem.kept[t] and above.issuperset(set(problem.consumers[t]) - {op})
        for t in problem.in_place[op]
    )
    credit = _credit(problem, op) if dies else 0
    return live + problem.alloc[op] + problem.workspace[op] - credit
