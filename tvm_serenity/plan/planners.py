"""The planners by name: one signature, from greedy to proof."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from tvm_serenity.graph.arrays import Ints
from tvm_serenity.plan import local, native
from tvm_serenity.plan.greedy import ORDERS, arena_of, place_in_order
from tvm_serenity.plan.problem import PlacementProblem
from tvm_serenity.plan.result import PlanOptions, Progress
from tvm_serenity.search.deadline import limit_left


@dataclass(frozen=True)
class Placement:
    """What a planner found: offsets, a proved bound, and whether a limit stopped it."""

    offsets: Ints
    lower_bound_bytes: int
    timed_out: bool = False
    statistics: dict[str, object] = field(default_factory=dict)


Planner = Callable[[PlacementProblem, PlanOptions, int], Placement]
"""Takes the problem, the options and a proved lower bound."""


def place_greedily(
    problem: PlacementProblem,
    options: PlanOptions,
    bound: int,
    orders: Sequence[str] = tuple(ORDERS),
) -> Placement:
    """The best of several orders, each placed by first fit with gap filling."""
    found = []
    for name in orders:
        offsets = place_in_order(problem, ORDERS[name](problem))
        found.append((arena_of(problem, offsets), name, offsets))
        if found[-1][0] <= options.ends_at(bound):
            break
    _, name, offsets = min(found, key=lambda f: f[0])
    return Placement(offsets, bound, statistics={"found_by": name})


def place_by_local_search(problem: PlacementProblem, options: PlanOptions, bound: int) -> Placement:
    """The greedy portfolio, then a search over placement orders; proves nothing itself."""
    if native.available():
        return _native(problem, options, bound, exact=False)
    started = time.perf_counter()
    limit = limit_left(options.time_limit_s)
    first = place_greedily(problem, options, bound)
    offsets, late = local.improve(
        problem,
        first.offsets,
        options.ends_at(bound),
        options.seed,
        None if limit is None else started + limit,
        options.steps,
    )
    if options.progress is not None:
        seconds = time.perf_counter() - started
        options.progress(Progress("local", seconds, arena_of(problem, offsets), bound))
    return Placement(offsets, bound, late, {"found_by": "local search"})


def place_exactly(problem: PlacementProblem, options: PlanOptions, bound: int) -> Placement:
    """Greedy, local search, then the exact search until proved or out of time."""
    return _native(problem, options, bound, exact=True)


def place_automatically(problem: PlacementProblem, options: PlanOptions, bound: int) -> Placement:
    """The exact planner; without the native core, local search."""
    chosen = place_exactly if native.available() else place_by_local_search
    return chosen(problem, options, bound)


def _native(problem: PlacementProblem, options: PlanOptions, bound: int, exact: bool) -> Placement:
    found = native.solve(problem, options, bound, exact)
    statistics = {name: found[name] for name in ("found_by", "nodes", "rounds")}
    if found["interrupted"]:
        statistics["limit"] = "interrupt"
    return Placement(found["offsets"], found["bound"], found["stopped"], statistics)


PLANNERS: dict[str, Planner] = {
    "auto": place_automatically,
    "exact": place_exactly,
    "local": place_by_local_search,
    "greedy": place_greedily,
    **{name: partial(place_greedily, orders=(name,)) for name in ORDERS},
}
"""Every planner by name."""
