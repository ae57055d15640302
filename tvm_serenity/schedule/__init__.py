"""Schedulers: ``schedule`` orders a graph's operators by one of these methods.

==========  ===================================================================  =============
method      order                                                                bound
==========  ===================================================================  =============
``given``   the order of the file                                                trivial
``kahn``    Kahn's queue                                                         trivial
``dfs``     depth first                                                          trivial
``greedy``  the ready op with the largest immediate relief runs next             trivial
``dp``      SERENITY as the paper defines it: dynamic programming over           optimal
            zero-indegree sets, divide and conquer, adaptive soft budgeting
``exact``   branch and bound over downsets with block moves (docs/search.md)     optimal
``auto``    ``exact`` with a default time limit of 60 s                          best so far
==========  ===================================================================  =============

The trivial bound is the largest need of a single op, or the live bytes at the start or the end.
``auto`` and ``exact`` never return an order with a higher peak than the given one.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tvm_serenity.errors import InputError
from tvm_serenity.graph import Graph, complete_order, is_order
from tvm_serenity.memory import least_need, peak_bytes
from tvm_serenity.schedule import baselines, dp
from tvm_serenity.schedule.check import check_schedule, naive_peak
from tvm_serenity.schedule.exact import Interrupted, exact
from tvm_serenity.schedule.problem import Problem, peak_of, problem_of
from tvm_serenity.schedule.result import Options, Progress, Schedule
from tvm_serenity.search.deadline import limit_left, seconds_left, within
from tvm_serenity.search.outcome import Outcome

__all__ = [
    "METHODS",
    "Options",
    "Progress",
    "Schedule",
    "check_schedule",
    "naive_peak",
    "schedule",
    "too_late_for",
    "trivial_bound",
]

AUTO_TIME_LIMIT_S = 60.0
LARGE_OPS = 20_000
PREPARE_S = 1e-5
"""Seconds per op to prepare a graph; with less time left, a large graph is not searched."""
PREPARE_PROBLEMS = 1.5
"""Time to prepare a search after the problem is built, as a multiple of the problem's build time.

Measuring the build time accounts for the machine's load.
"""

Method = Callable[[Problem, Options], Schedule]


def schedule(graph: Graph, method: str = "auto", options: Options | None = None) -> Schedule:
    """Return the order of ``graph``'s ops that ``method`` computes, its peak and a lower bound.

    The result is deterministic unless a time limit ends the search. Raises :class:`InputError` if
    ``method`` is unknown or an order in ``options.start`` is not topological.
    """
    if method not in METHODS:
        raise InputError(f"unknown method {method!r}; choose one of {', '.join(METHODS)}")
    options = options or Options()
    if any(not is_order(graph, order) for order in options.start):
        raise InputError(
            f"{graph.name}: a start order is not a topological order of its {len(graph.ops)} ops"
        )
    limit = options.time_limit_s
    if method == "auto" and limit is None and limit_left() is None:
        limit = AUTO_TIME_LIMIT_S
    with within(limit):
        if too_late_for(len(graph.ops)):
            return _as_given(graph, method)
        try:
            began = time.monotonic()
            problem = problem_of(graph)
            each_s = (time.monotonic() - began) / max(len(graph.ops), 1)
            if too_late_for(len(graph.ops), PREPARE_PROBLEMS * each_s):
                return _as_given(graph, method)
            solution = METHODS[method](problem, options)
            order = complete_order(graph, tuple(map(problem.ops.__getitem__, solution.order)))
        except KeyboardInterrupt:
            if not options.keep_on_interrupt:
                raise
            return _as_given(graph, method, "interrupt")
    return replace(solution, method=method, order=order)


def too_late_for(ops: int, each_s: float = PREPARE_S, large: int | None = None) -> bool:
    """Return whether the time left is too short to prepare a search on a graph of ``ops`` ops.

    ``each_s`` is the preparation time per op in seconds. The result is False for graphs with fewer
    than ``large`` ops (default: ``LARGE_OPS``).
    """
    return ops >= (LARGE_OPS if large is None else large) and seconds_left() < each_s * ops


def _as_given(graph: Graph, method: str, limit: str = "time") -> Schedule:
    """Return the given order and the largest need of a single op, without a search.

    ``limit`` is the reason: "time" or "interrupt".
    """
    started = time.perf_counter()
    peak, (bound, op) = peak_bytes(graph), least_need(graph)
    return Schedule(
        method=method,
        order=tuple(range(len(graph.ops))),
        peak_bytes=peak,
        lower_bound_bytes=bound,
        outcome=Outcome.OPTIMAL if peak == bound else Outcome.TIMEOUT,
        states=0,
        seconds=time.perf_counter() - started,
        statistics={"limit": limit, "proof": {"kind": "op", "op": op}},
    )


def trivial_bound(problem: Problem) -> int:
    """Return the trivial bound in bytes: the largest need of one op, at the start or at the end."""

    def need(op: int) -> int:
        bytes_read = sum(problem.sizes[t] for t in problem.inputs[op])
        taken = any(not problem.kept[t] for t in problem.in_place[op])
        credit = problem.takeover[op] if taken else 0
        return bytes_read + problem.alloc[op] + problem.workspace[op] - credit

    ends = max(problem.start_bytes, problem.end_bytes)
    return max([ends, *(need(op) for op in range(problem.count))])


def _baseline(order_of: Callable[[Problem], Sequence[int]]) -> Method:
    def run(problem: Problem, options: Options) -> Schedule:
        started = time.perf_counter()
        order = tuple(order_of(problem))
        peak, bound = peak_of(problem, order), trivial_bound(problem)
        outcome = Outcome.OPTIMAL if peak == bound else Outcome.FEASIBLE
        if options.budget_bytes is not None and bound > options.budget_bytes:
            outcome = Outcome.INFEASIBLE
        return Schedule(
            method="",
            order=order,
            peak_bytes=peak,
            lower_bound_bytes=bound,
            outcome=outcome,
            states=0,
            seconds=time.perf_counter() - started,
        )

    return run


def _dp(problem: Problem, options: Options) -> Schedule:
    started = time.perf_counter()
    limit = limit_left(options.time_limit_s)
    deadline = None if limit is None else started + limit
    rows = {
        "dp": dp.plain(problem, deadline),
        "dp_divide_and_conquer": dp.divided(problem, deadline),
        "dp_divide_and_conquer_adaptive_soft_budgeting": dp.budgeted(problem, deadline),
    }
    statistics = {name: row.statistics() for name, row in rows.items()}
    finished = [row for row in rows.values() if row.finished]
    seconds = time.perf_counter() - started
    states = sum(row.states for row in rows.values())
    if not finished:
        order = tuple(baselines.given(problem))
        peak, bound = peak_of(problem, order), trivial_bound(problem)
        return Schedule(
            method="",
            order=order,
            peak_bytes=peak,
            lower_bound_bytes=bound,
            outcome=Outcome.TIMEOUT,
            states=states,
            seconds=seconds,
            statistics=statistics,
        )
    best = finished[-1]
    assert best.peak_bytes is not None
    outcome = Outcome.OPTIMAL
    if options.budget_bytes is not None and best.peak_bytes > options.budget_bytes:
        outcome = Outcome.INFEASIBLE
    peak = best.peak_bytes
    return Schedule(
        method="",
        order=best.order,
        peak_bytes=peak,
        lower_bound_bytes=peak,
        outcome=outcome,
        states=best.states,
        seconds=best.seconds,
        statistics=statistics,
    )


def _exact(problem: Problem, options: Options) -> Schedule:
    number = {op: i for i, op in enumerate(problem.ops)} if options.start else {}
    start = [[number[op] for op in order if op in number] for order in options.start]
    if start:
        options = replace(options, rules={"greedies": False, **options.rules})
    try:
        return exact(problem, options, start)
    except Interrupted as interrupt:
        if not options.keep_on_interrupt:
            raise
        return interrupt.solution


def _auto(problem: Problem, options: Options) -> Schedule:
    return _exact(problem, options)


METHODS: Mapping[str, Method] = {
    "auto": _auto,
    "exact": _exact,
    "dp": _dp,
    "greedy": _baseline(baselines.greedy),
    "dfs": _baseline(baselines.dfs),
    "kahn": _baseline(baselines.kahn),
    "given": _baseline(baselines.given),
}
