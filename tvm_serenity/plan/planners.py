"""The planners by name, from greedy to exact, with the same signature."""

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
    """A planner's result: offsets, a proved bound, and whether a limit stopped the search."""

    offsets: Ints
    lower_bound_bytes: int
    timed_out: bool = False
    statistics: dict[str, object] = field(default_factory=dict)


Planner = Callable[[PlacementProblem, PlanOptions, int], Placement]
"""A function that takes the problem, the options and a lower bound, and returns a placement."""


def place_greedily(
    problem: PlacementProblem,
    options: PlanOptions,
    bound: int,
    orders: Sequence[str] = tuple(ORDERS),
) -> Placement:
    """Place several orders by first fit with gap filling, and return the best placement."""
    tried = []
    for name in orders:
        offsets = place_in_order(problem, ORDERS[name](problem))
        tried.append((arena_of(problem, offsets), name, offsets))
        if tried[-1][0] <= options.ends_at(bound):
            break
    _, name, offsets = min(tried, key=lambda f: f[0])
    return Placement(offsets, bound, statistics={"found_by": name})


def place_by_local_search(problem: PlacementProblem, options: PlanOptions, bound: int) -> Placement:
    """Return the best placement of the greedy orders and of a local search, without a proof."""
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
    """Return the best placement of greedy, local and exact search; end at a proof or a limit."""
    return _native(problem, options, bound, exact=True)


def place_automatically(problem: PlacementProblem, options: PlanOptions, bound: int) -> Placement:
    """Return the result of exact search, or of local search without the native core."""
    chosen = place_exactly if native.available() else place_by_local_search
    return chosen(problem, options, bound)


def _native(problem: PlacementProblem, options: PlanOptions, bound: int, exact: bool) -> Placement:
    result = native.solve(problem, options, bound, exact)
    statistics = {name: result[name] for name in ("found_by", "nodes", "rounds")}
    if result["interrupted"]:
        statistics["limit"] = "interrupt"
    return Placement(result["offsets"], result["bound"], result["stopped"], statistics)


PLANNERS: dict[str, Planner] = {
    "auto": place_automatically,
    "exact": place_exactly,
    "local": place_by_local_search,
    "greedy": place_greedily,
    **{name: partial(place_greedily, orders=(name,)) for name in ORDERS},
}
"""Every planner by name."""
