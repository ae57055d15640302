"""``plan``: runs a planner and returns its placement with the outcome."""

import time
from collections.abc import Sequence
from dataclasses import replace

from tvm_serenity.errors import InputError
from tvm_serenity.plan.bound import problem_bound
from tvm_serenity.plan.buffers import Buffer
from tvm_serenity.plan.columns import constrained
from tvm_serenity.plan.conflict import find_conflict
from tvm_serenity.plan.fits import fixed_clash
from tvm_serenity.plan.greedy import arena_of
from tvm_serenity.plan.planners import PLANNERS, Placement
from tvm_serenity.plan.problem import PlacementProblem, prepare
from tvm_serenity.plan.regions import Assignment, assign, choices_of, part
from tvm_serenity.plan.result import Plan, PlanOptions
from tvm_serenity.search.deadline import limit_left, seconds_left, within
from tvm_serenity.search.outcome import Outcome

_CONFLICT_SECONDS, _CONFLICT_LEAST = 5.0, 0.25


def plan(
    buffers: Sequence[Buffer], method: str = "auto", options: PlanOptions | None = None
) -> Plan:
    """Return a placement of ``buffers`` in one arena, or in the regions of ``options``.

    Raises :class:`InputError`, which names the buffer or option, if one is invalid. Raises
    :class:`MissingPartError` if ``method`` is "exact" and the native core is not installed.
    """
    options = options or PlanOptions()
    if method not in PLANNERS:
        raise InputError(f"unknown planner {method!r}; choose one of {', '.join(PLANNERS)}")
    with within(options.time_limit_s):
        if options.regions:
            return _plan_regions(buffers, method, options)
        if named := next((b for b in constrained(buffers) if b.regions), None):
            raise InputError(
                f"buffer {named.name!r} lists regions, but the options define none; pass "
                "PlanOptions(regions=...)"
            )
        return _plan_arena(buffers, method, options)


def _plan_arena(buffers: Sequence[Buffer], method: str, options: PlanOptions) -> Plan:
    started = time.perf_counter()
    problem = prepare(buffers, options.alignment)
    if clash := fixed_clash(problem):
        raise InputError(
            f"buffers {clash[0]!r} and {clash[1]!r} are live at the same step, but their fixed "
            "offsets overlap; change one of the offsets"
        )
    bound = problem_bound(problem)
    capacity = options.capacity_bytes
    if not problem.index:
        return Plan(
            buffers=problem.buffers,
            offsets=problem.restore(()),
            arena_bytes=0,
            lower_bound_bytes=0,
            outcome=Outcome.OPTIMAL,
            method=method,
            seconds=0.0,
            statistics={"nodes": 0},
        )
    placement = PLANNERS[method](problem, options, bound)
    arena = arena_of(problem, placement.offsets)
    outcome = _outcome(placement, arena, capacity)
    statistics = {**placement.statistics, "best_arena_bytes": arena}
    if outcome is Outcome.INFEASIBLE and capacity is not None:
        names, minimal = find_conflict(buffers, capacity, options, _left())
        statistics |= {"conflict": names, "conflict_minimal": minimal}
    fits = capacity is None or arena <= capacity
    return Plan(
        buffers=problem.buffers,
        offsets=problem.restore(placement.offsets) if fits else (),
        arena_bytes=arena if fits else 0,
        lower_bound_bytes=placement.lower_bound_bytes,
        outcome=outcome,
        method=method,
        seconds=time.perf_counter() - started,
        statistics=statistics,
    )


def _left() -> float:
    """Return the seconds for finding a conflict: the time left, but enough for a small problem."""
    return max(_CONFLICT_LEAST, seconds_left(_CONFLICT_SECONDS))


def _outcome(placement: Placement, arena: int, capacity: int | None) -> Outcome:
    if capacity is not None and placement.lower_bound_bytes > capacity:
        return Outcome.INFEASIBLE
    if arena <= placement.lower_bound_bytes:
        return Outcome.OPTIMAL
    if placement.timed_out or (capacity is not None and arena > capacity):
        return Outcome.TIMEOUT
    return Outcome.FEASIBLE


def _plan_regions(buffers: Sequence[Buffer], method: str, options: PlanOptions) -> Plan:
    if options.capacity_bytes is not None:
        raise InputError(
            "capacity_bytes is for one arena; with regions, give each Region its own capacity"
        )
    started = time.perf_counter()
    limit = limit_left(options.time_limit_s)
    deadline = None if limit is None else started + limit
    problem = prepare(buffers, options.alignment)
    assignment = assign(problem, options, deadline)
    statistics: dict[str, object] = {"nodes": assignment.nodes, "cost_bytes": assignment.cost}
    if assignment.region_of is None:
        outcome = Outcome.INFEASIBLE if assignment.proved else Outcome.TIMEOUT
        seconds = time.perf_counter() - started
        return Plan(
            buffers=problem.buffers,
            offsets=(),
            arena_bytes=0,
            lower_bound_bytes=0,
            outcome=outcome,
            method=method,
            seconds=seconds,
            statistics=statistics,
        )
    plans: dict[str, Plan] = {}
    for r, region in enumerate(options.regions):
        until = started if any(plan.interrupted for plan in plans.values()) else deadline
        plans[region.name] = _plan_region(problem, assignment.region_of, r, method, options, until)
    if assignment.first is not None and any(p.buffers and not p.offsets for p in plans.values()):
        # The first-fit assignment has offsets, so it is a placement even after the time limit.
        assignment = assignment.first
        statistics["cost_bytes"] = assignment.cost
        for r, region in enumerate(options.regions):
            plans[region.name] = _placed_region(problem, assignment, r, plans[region.name])
    if any(plan.interrupted for plan in plans.values()):
        statistics["limit"] = "interrupt"
    assert assignment.region_of is not None
    return _join(
        problem,
        assignment.region_of,
        assignment.proved,
        plans,
        method,
        options,
        started,
        statistics,
    )


def _plan_region(
    problem: PlacementProblem,
    region_of: Sequence[int],
    region: int,
    method: str,
    options: PlanOptions,
    deadline: float | None,
) -> Plan:
    inside = [i for i, r in enumerate(region_of) if r == region]
    left = None if deadline is None else max(0.1, deadline - time.perf_counter())
    narrowed = replace(
        options,
        regions=(),
        capacity_bytes=options.regions[region].capacity_bytes,
        time_limit_s=left,
    )
    return _plan_arena(part(problem, inside), method, narrowed)


def _placed_region(
    problem: PlacementProblem, assignment: Assignment, region: int, tried: Plan
) -> Plan:
    """Return a plan of ``region`` by first fit, because the planner's plan ``tried`` failed."""
    inside = [i for i, r in enumerate(assignment.region_of or ()) if r == region]
    sizes = [int(problem.size[i]) for i in inside]
    offsets = tuple(assignment.offsets[i] for i in inside)
    ends = [offset + size for offset, size in zip(offsets, sizes, strict=True)]
    return replace(
        tried,
        buffers=tuple(part(problem, inside)),
        offsets=offsets,
        arena_bytes=max(ends, default=0),
        lower_bound_bytes=0,
        outcome=Outcome.TIMEOUT,
    )


def _join(
    problem: PlacementProblem,
    region_of: Sequence[int],
    proved: bool,
    plans: dict[str, Plan],
    method: str,
    options: PlanOptions,
    started: float,
    statistics: dict[str, object],
) -> Plan:
    """Join the plans of the regions; the result is optimal only if each part is."""
    names = [options.regions[choices_of(b, options.regions)[0]].name for b in problem.buffers]
    placed = [0] * len(problem.index)
    for r, region in enumerate(options.regions):
        inside = [i for i, chosen in enumerate(region_of) if chosen == r]
        for i, offset in zip(inside, plans[region.name].offsets, strict=False):
            placed[i] = offset
            names[problem.index[i]] = region.name
    outcomes = {plan.outcome for plan in plans.values()}
    outcome = Outcome.TIMEOUT if not proved else Outcome.OPTIMAL
    for worse in (Outcome.FEASIBLE, Outcome.TIMEOUT):
        outcome = worse if worse in outcomes else outcome
    complete = all(plan.offsets or not plan.buffers for plan in plans.values())
    return Plan(
        buffers=problem.buffers,
        offsets=problem.restore(placed) if complete else (),
        arena_bytes=sum(plan.arena_bytes for plan in plans.values()),
        lower_bound_bytes=sum(plan.lower_bound_bytes for plan in plans.values()),
        outcome=outcome,
        method=method,
        seconds=time.perf_counter() - started,
        statistics=statistics,
        regions=tuple(names),
        region_bytes={name: plan.arena_bytes for name, plan in plans.items()},
    )
