"""The exact search: computes an order of least peak with its proof (``docs/search.md``)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tvm_serenity.errors import InputError
from tvm_serenity.schedule.instance import Instance, instance_of, profile, segment
from tvm_serenity.schedule.limits import SearchRun
from tvm_serenity.schedule.probe import Part, Proof, core_module
from tvm_serenity.schedule.problem import Problem
from tvm_serenity.schedule.result import Options, Schedule
from tvm_serenity.schedule.solve import solve
from tvm_serenity.schedule.starts import forced_ops, op_needs
from tvm_serenity.search.outcome import Outcome

RULES: Mapping[str, str] = {
    "native": "use the native core; off: the same search in Python",
    "divide": "split at ops comparable to all others, where every order has the same state",
    "cells": "solve equal parts only once",
    "greedies": "start from greedy orders as well",
    "root-cuts": "R7: bound the need of every order at an op by a minimum cut",
    "block-moves": "R1: one move runs all ops that must run before a storage can die",
    "commitment": "R2: try no alternatives to a move that ends with no more live bytes",
    "visited": "R5: expand each state once",
    "next-budget": "R6: the least rejected key is the next budget that may be feasible",
    "reverse": "R8: try the reversed instance if a probe, a segment or a window is hard",
    "beam": "look for a better order by beam search if a probe is hard",
    "segments": "R10: re-order segments of the best order around its peak",
    "windows": "R9: bound every order by relaxed windows around the peak",
    "branching": "R11: bound a large window by branching over which of two ops runs first",
    "top-first": "probe just below the best peak instead of climbing from the bound",
}
"""The rules of the search by name; each is on unless ``Options.rules`` switches it off."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during the search; ``solution`` is the best result so far."""

    def __init__(self, solution: Schedule) -> None:
        super().__init__()
        self.solution = solution


def exact(
    problem: Problem, options: Options | None = None, start: Sequence[Sequence[int]] = ()
) -> Schedule:
    """Return an order of least peak with its proof, or the best order and bound within the limits.

    The order has the problem's op numbers. ``statistics["proof"]`` proves the bound and has the
    graph's op numbers. The search starts with the given order and the orders ``start``, and the
    result is never worse. The result is deterministic unless a time limit ends the search. Raises
    :class:`Interrupted` on Ctrl-C, and :class:`InputError` if a rule is unknown.
    """
    options = options or Options()
    run = SearchRun(options, _rules(options))
    search = _prepare(problem, run, start)
    try:
        _work(search)
    except KeyboardInterrupt as interrupt:
        run.stop("interrupt")
        raise Interrupted(_solution(search)) from interrupt
    return _solution(search)


def _rules(options: Options) -> dict[str, bool]:
    unknown = [name for name in options.rules if name not in RULES]
    if unknown:
        raise InputError(f"unknown search rule {unknown[0]!r}; choose among {', '.join(RULES)}")
    return {name: bool(options.rules.get(name, True)) for name in RULES}


@dataclass
class _Stretch:
    """Ops ``first`` to ``last - 1``, which occupy the same steps in every order.

    ``order`` and ``peak`` are those of the best start. ``part`` is set when work on the stretch
    begins; it numbers the ops from 0, and does not count ``offset`` bytes that are live throughout.
    """

    first: int
    last: int
    order: list[int]
    peak: int
    part: Part | None = None
    offset: int = 0

    @property
    def best_bytes(self) -> int:
        """The peak of the best order so far, in the graph's bytes."""
        return self.peak if self.part is None else self.part.peak + self.offset

    @property
    def best_order(self) -> list[int]:
        """The best order so far, in the problem's op numbers."""
        if self.part is None:
            return self.order
        if self.first == 0:
            return self.part.order
        return list(map(self.first.__add__, self.part.order))


@dataclass
class _Search:
    """The state of a search: the open stretches, and the best bound with its proof."""

    problem: Problem
    run: SearchRun
    instance: Instance
    base: int
    live: tuple[int, ...]  # Bytes before each step; equal in all orders where a stretch begins.
    stretches: list[_Stretch]
    fixed_peak: int  # The peak outside the stretches, in bytes.
    given_peak: int  # The peak of the given order, in bytes.
    proof: Proof = field(default_factory=dict)
    solved: dict[Instance, Part] = field(default_factory=dict)

    def refresh(self) -> None:
        """Update the best peak of ``run`` from the stretches."""
        self.run.best_bytes = max([self.fixed_peak, *(s.best_bytes for s in self.stretches)])

    def prove(self, bound: int, proof: Proof) -> None:
        """Store a bound on the graph's peak, with its proof, if it is higher than the known one."""
        if bound > self.run.bound_bytes or not self.proof:
            self.run.bound_bytes, self.proof = bound, proof


def _prepare(problem: Problem, run: SearchRun, start: Sequence[Sequence[int]]) -> _Search:
    """Return the problem split into stretches, each with its best known order."""
    instance, base = instance_of(problem)
    orders = [list(range(problem.count)), *map(list, start)]
    profiles = [profile(instance, order) for order in orders]
    forced = forced_ops(instance.predecessors)
    if not run.rules["divide"]:
        forced[:] = False
    places = np.flatnonzero(forced).tolist()
    stretches: list[_Stretch] = []
    first = 0
    for step in [*places, problem.count]:
        if first < step:
            peaks = [base + max(p.need[first:step]) for p in profiles]
            best = peaks.index(min(peaks))
            stretches.append(_Stretch(first, step, orders[best][first:step], peaks[best]))
        first = step + 1
    needs = [base + profiles[0].need[op] for op in places]
    fixed = max([base + profiles[0].live[0], base + profiles[0].live[-1], *needs])
    given = base + profiles[0].peak
    search = _Search(problem, run, instance, base, profiles[0].live, stretches, fixed, given)
    search.prove(base + profiles[0].live[0], {"kind": "start"})
    search.prove(base + profiles[0].live[-1], {"kind": "end"})
    if problem.count:
        alone = op_needs(instance)
        alone[places] = [profiles[0].need[op] for op in places]
        worst = int(alone.argmax())
        kind = "forced-op" if forced[worst] else "op"
        search.prove(base + int(alone[worst]), {"kind": kind, "op": problem.ops[worst]})
    search.refresh()
    return search


def _work(search: _Search) -> None:
    """Solve the stretches, highest first, until the others can change neither peak nor bound."""
    run, ceiling = search.run, search.run.options.budget_bytes
    for stretch in sorted(search.stretches, key=lambda s: (-s.peak, s.first)):
        if stretch.peak <= run.bound_bytes or (ceiling is not None and run.bound_bytes > ceiling):
            return
        _improve(search, stretch)


def _improve(search: _Search, stretch: _Stretch) -> None:
    """Solve one stretch as a separate instance, or reuse the solution of an equal instance."""
    run, first = search.run, stretch.first
    numbers = range(search.problem.count)
    instance, _ = segment(search.instance, numbers, numbers, first, stretch.last)
    offset = search.base + search.live[first] - instance.start_bytes

    def changed(part: Part) -> None:
        search.refresh()
        if part.bound + offset > run.bound_bytes:
            search.prove(part.bound + offset, _proof_in_graph(search, stretch, part.proof))

    order = [op - first for op in stretch.order]
    stretch.offset = offset
    stretch.part = part = Part(instance, order, stretch.peak - offset, changed=changed)
    cells = run.rules["cells"] and len(search.stretches) > 1
    known = search.solved.get(instance) if cells else None
    if known is not None:
        run.count("cells_recalled")
        part.offer(known.order)
        part.prove(known.bound, known.proof)
    ceiling = run.options.budget_bytes
    solve(part, run, run.bound_bytes - offset, None if ceiling is None else ceiling - offset)
    if cells:
        search.solved[instance] = part
    run.count("parts")


def _proof_in_graph(search: _Search, stretch: _Stretch, proof: Proof) -> Proof:
    """Return a part's proof in the graph's op numbers and bytes."""
    ops = search.problem.ops

    def number(op: int) -> int:
        return ops[stretch.first + op]

    result: dict[str, Any] = dict(proof)
    if "op" in proof:
        result["op"] = number(result["op"])
    if "ops" in proof:
        result["ops"] = [number(op) for op in result["ops"]]
    if "branches" in proof:
        result["branches"] = [[number(op) for op in step] for step in result["branches"]]
    if "budget_bytes" in proof:
        result["budget_bytes"] += stretch.offset
    if stretch.last - stretch.first < len(ops):
        result["part"] = [number(0), number(stretch.last - stretch.first - 1)]
    return result


def _solution(search: _Search) -> Schedule:
    run, problem = search.run, search.problem
    order = list(range(problem.count))
    for stretch in search.stretches:
        order[stretch.first : stretch.last] = stretch.best_order
    search.refresh()
    peak, bound, budget = run.best_bytes, run.bound_bytes, run.options.budget_bytes
    if budget is not None and bound > budget:
        outcome = Outcome.INFEASIBLE
    elif peak == bound:
        outcome = Outcome.OPTIMAL
    else:
        outcome = Outcome.TIMEOUT if run.limited else Outcome.FEASIBLE
    statistics: dict[str, object] = {
        "core": "native" if core_module(run.rules).__name__.endswith("_schedule") else "python",
        "given_peak_bytes": search.given_peak,
        "stretches": len(search.stretches),
        **run.counts,
        "proof": search.proof,
        "gap": (peak - bound) / bound if bound else 0.0,
    }
    if run.limited:
        statistics["limit"] = run.limited
    return Schedule(
        method="exact",
        order=tuple(order),
        peak_bytes=peak,
        lower_bound_bytes=bound,
        outcome=outcome,
        states=run.states,
        seconds=run.seconds,
        statistics=statistics,
    )
