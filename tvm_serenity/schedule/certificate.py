"""Certificates: the claims of a schedule, with the data to check them without the search.

A certificate is a JSON object with the graph's digest, the order and its peak, the lower bound and
its proof (``docs/search.md`` lists the kinds of proof). The checker recomputes from the graph:

* the order's peak, by the naive checker of ``check.py``;
* for the proofs *start*, *end*, *op* and *forced-op*, the sum of bytes;
* for *root-cut*, and for *window* with an op or with branches, the minimum cuts, by networkx;
* for *window* and *exhausted*, that no order of the relaxed instance fits the budget. The checker
  rebuilds the instance from its definition, and visits all states within the budget without any
  pruning rule. If there are too many states, it runs the reference search.

``Confirmed.method`` names the method that was used.
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
"""Largest number of ops for the naive checker; larger orders are checked by ``peak_of``."""


@dataclass(frozen=True)
class Confirmed:
    """The result of a check that found no wrong claim.

    ``peak_bytes`` is confirmed; ``lower_bound_bytes`` is confirmed if ``bound_checked`` is True.
    ``method`` says how the bound was checked.
    """

    peak_bytes: int
    lower_bound_bytes: int
    bound_checked: bool
    method: str


def certificate(graph: Graph, solution: Schedule) -> dict[str, Any]:
    """Return the certificate of a schedule of ``graph``, ready for ``json.dump``."""
    proof = solution.statistics.get("proof")
    if not isinstance(proof, Mapping):
        raise InputError(
            f"{graph.name}: method {solution.method!r} gives no proof to certify; schedule with "
            "method 'exact'"
        )
    return {
        "format": FORMAT,
        "graph": graph.name,
        "graph_sha256": digest(graph),
        "method": solution.method,
        "outcome": str(solution.outcome),
        "order": list(solution.order),
        "peak_bytes": solution.peak_bytes,
        "lower_bound_bytes": solution.lower_bound_bytes,
        "proof": dict(proof),
        "states": solution.states,
    }


def digest(graph: Graph) -> str:
    """Return a SHA-256 digest of all fields of ``graph`` on which the peak of an order depends."""
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
    """Check ``claims``, a certificate of ``graph``, and return the confirmed values.

    ``states`` limits each of the two searches that re-solve; a bound that neither search proves
    within the limit is returned as unchecked. Raises :class:`CheckError` with the wrong claim.
    """
    try:
        order, peak, bound = claims["order"], claims["peak_bytes"], claims["lower_bound_bytes"]
        proof, outcome = claims["proof"], claims["outcome"]
        if claims["format"] != FORMAT:
            raise CheckError(
                f"{graph.name}: the certificate's format is {claims['format']!r}, not {FORMAT!r}"
            )
        if claims["graph_sha256"] != digest(graph):
            raise CheckError(f"{graph.name}: the certificate is for a graph with another digest")
        _check_order(graph, order, peak)
        if bound > peak or (outcome == Outcome.OPTIMAL and bound != peak):
            raise CheckError(
                f"{graph.name}: the certificate claims a bound of {bound} bytes and a peak of "
                f"{peak} bytes, which contradict its outcome {outcome!r}"
            )
        if int(proof.get("budget_bytes", -1)) >= peak:
            raise CheckError(
                f"{graph.name}: the certificate contradicts itself: its order has a peak of {peak} "
                "bytes, within the budget that its proof excludes"
            )
        problem = problem_of(graph)
        proved, method = _proved(problem, dict(proof), bound, states)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise CheckError(f"{graph.name}: the certificate is not well formed ({error!r})") from error
    if proved is not None and proved < bound:
        raise CheckError(
            f"{graph.name}: the certificate claims a bound of {bound} bytes, but its proof gives "
            f"{proved} bytes"
        )
    return Confirmed(peak, bound, proved is not None, method)


def _check_order(graph: Graph, order: list[int], peak: int) -> None:
    if sorted(order) != list(range(len(graph.ops))):
        raise CheckError(f"{graph.name}: the order does not list each op exactly once")
    if len(graph.ops) <= NAIVE_OPS:
        actual = naive_peak(graph, order)
    else:
        position = {op: step for step, op in enumerate(order)}
        for op, before in enumerate(graph.predecessors):
            if any(position[other] > position[op] for other in before):
                raise CheckError(
                    f"{graph.name}: op {graph.ops[op].name!r} runs before one of its predecessors"
                )
        problem = problem_of(graph)
        number = {op: i for i, op in enumerate(problem.ops)}
        actual = peak_of(problem, [number[op] for op in order if op in number])
    if actual != peak:
        raise CheckError(
            f"{graph.name}: the certificate claims a peak of {peak} bytes, but its order needs "
            f"{actual} bytes"
        )


def _proved(
    problem: Problem, proof: dict[str, Any], bound: int, states: int
) -> tuple[int | None, str]:
    """Return the bound in bytes that ``proof`` gives, and the method that confirmed it.

    The bound is None if the check exceeds the limit of ``states``.
    """
    number = {op: i for i, op in enumerate(problem.ops)}
    match proof["kind"]:
        case "start":
            return problem.start_bytes, "live at the start"
        case "end":
            return problem.end_bytes, "live at the end"
        case "op":
            own = _own_need(problem, number[proof["op"]])
            if own >= bound:
                return own, "the op's tensors and workspace added up"
            # The cut also counts tensors that are live throughout the op's part of the graph.
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
            raise CheckError(
                f"the certificate has a proof of the unknown kind {kind!r}; a newer release may "
                "have made it, or it is damaged"
            )
    return _window(problem, proof, sorted(ops), states)


def _window(
    problem: Problem, proof: dict[str, Any], chosen: list[int], states: int
) -> tuple[int | None, str]:
    """Return the bound and the method for a proof over the ops ``chosen``."""
    local = {problem.ops[op]: i for i, op in enumerate(chosen)}
    budget = int(proof["budget_bytes"])
    relaxed = relaxed_storages(problem, chosen)
    budget_within = budget - _always_live(problem)
    at = local[proof["op"]] if "op" in proof else None
    if at is not None and least_need(relaxed, at, budget_within + 1) > budget_within:
        return budget + 1, CUT  # The cut at this op is above the budget.
    if "branches" in proof:
        branches = [[local[op] for op in step] for step in proof["branches"]]
        need = least_of_branches(relaxed, branches, budget_within + 1)
        return need + budget - budget_within, f"{CUT}, {len(branches)} branches"
    core = Core(*relaxed, True, True, True)
    feasible = _visit_all(core, budget_within, states)
    method = "all states within the budget visited"
    if feasible is None:
        status = core.decide(budget_within, states, 1e9, 2**62, None)[0]
        feasible = {"feasible": True, "infeasible": False}.get(status)
        method = "re-solved by the reference search"
    if feasible:
        raise CheckError(
            f"the proof is wrong: its ops have an order with a peak within {budget} bytes"
        )
    if feasible is None:
        return None, f"not proved within {states} states"
    return budget + 1, method


def _always_live(problem: Problem) -> int:
    rows = zip(problem.sizes, problem.producer, problem.kept, strict=True)
    return sum(size for size, made, kept in rows if made < 0 and kept)


def _least(problem: Problem, op: int, bound: int) -> int:
    return least_need(storages_of(problem), op, bound)


def relaxed_core(problem: Problem, chosen: list[int]) -> Core:
    """Return a search core for the relaxed instance (rule R9) over the ops ``chosen``."""
    return Core(*relaxed_storages(problem, chosen), True, True, True)


def _visit_all(core: Core, budget: int, states: int) -> bool | None:
    """Return whether an order fits ``budget``, or None if there are more than ``states`` states."""
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
    """Return the bytes that every order needs at ``op``, which is comparable to all other ops."""
    above, below = related(problem.predecessors, op)
    if len(above) + len(below) + 1 != problem.count:
        raise CheckError(
            f"the proof is wrong: op {problem.ops[op]} is not comparable to all other ops, so its "
            "need depends on the order"
        )
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
