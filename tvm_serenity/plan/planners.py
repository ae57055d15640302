"""The planners by name, and ``plan``, which runs one and states what its answer is worth."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from tvm_serenity.errors import InputError
from tvm_serenity.outcome import Outcome
from tvm_serenity.plan.bound import problem_bound
from tvm_serenity.plan.buffers import Buffer
from tvm_serenity.plan.greedy import ORDERS, arena_of, place_in_order
from tvm_serenity.plan.problem import Ints, Problem, prepare
from tvm_serenity.plan.result import Plan, PlanOptions


@dataclass(frozen=True)
class Placement:
    """What a planner found: offsets (or None), a proved bound, whether a limit stopped it."""

    offsets: Ints | None
    lower_bound_bytes: int
    timed_out: bool = False
    statistics: dict[str, object] = field(default_factory=dict)


Planner = Callable[[Problem, PlanOptions, int], Placement]
"""Takes the problem, the options and a lower bound."""


def place_greedily(
    problem: Problem, options: PlanOptions, bound: int, orders: Sequence[str] = tuple(ORDERS)
) -> Placement:
    """The best of several orders, each placed by first fit with gap filling."""
    best, chosen = None, ""
    for name in orders:
        offsets = place_in_order(problem, ORDERS[name](problem))
        if best is None or arena_of(problem, offsets) < arena_of(problem, best):
            best, chosen = offsets, name
        if arena_of(problem, best) <= bound:
            break
    return Placement(best, bound, statistics={"order": chosen})


PLANNERS: dict[str, Planner] = {
    "auto": place_greedily,
    "greedy": place_greedily,
    **{name: partial(place_greedily, orders=(name,)) for name in ORDERS},
}
"""Every planner by name."""


def plan(
    buffers: Sequence[Buffer], method: str = "auto", options: PlanOptions | None = None
) -> Plan:
    """A placement of ``buffers`` in one arena and what is proved about it.

    Raises ``InputError`` on buffers or options that make no sense, naming them.
    """
    options = options or PlanOptions()
    if method not in PLANNERS:
        raise InputError(f"unknown planner {method!r}; known: {', '.join(PLANNERS)}")
    started = time.perf_counter()
    problem = prepare(buffers, options.alignment)
    bound = problem_bound(problem)
    found = PLANNERS[method](problem, options, bound)
    arena = 0 if found.offsets is None else arena_of(problem, found.offsets)
    statistics = {"best_arena_bytes": arena, **found.statistics}
    outcome = _outcome(found, arena, options.capacity_bytes)
    fits = found.offsets is not None and outcome is not Outcome.INFEASIBLE
    if options.capacity_bytes is not None and arena > options.capacity_bytes:
        fits = False
    return Plan(
        buffers=problem.buffers,
        offsets=problem.restore(found.offsets) if fits and found.offsets is not None else (),
        arena_bytes=arena if fits else 0,
        lower_bound_bytes=found.lower_bound_bytes,
        outcome=outcome,
        method=method,
        seconds=time.perf_counter() - started,
        statistics=statistics,
    )


def _outcome(found: Placement, arena: int, capacity: int | None) -> Outcome:
    if capacity is not None and found.lower_bound_bytes > capacity:
        return Outcome.INFEASIBLE
    if found.offsets is None:
        return Outcome.TIMEOUT
    if arena <= found.lower_bound_bytes:
        return Outcome.OPTIMAL
    if found.timed_out or (capacity is not None and arena > capacity):
        return Outcome.TIMEOUT
    return Outcome.FEASIBLE
