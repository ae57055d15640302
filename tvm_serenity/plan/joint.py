"""Searches order and placement together, for the smallest arena.

The least peak over all orders is a lower bound on every arena. The search first computes an order
of least peak and places it. If the arena equals the bound, it is optimal. Otherwise a local search
tries other orders, by moving an op between its predecessors and its successors. Orders whose peak
is not below the best arena are skipped, the others are placed.
"""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from tvm_serenity.graph import Graph, complete_order
from tvm_serenity.graph.arrays import ints
from tvm_serenity.memory import LiveRange, live_ranges
from tvm_serenity.plan import BufferColumns, FreeBuffers, Plan, PlanOptions, plan
from tvm_serenity.schedule import Options, Schedule, schedule, too_late_for
from tvm_serenity.schedule.problem import Problem, peak_of, problem_of
from tvm_serenity.search.deadline import seconds_left, within
from tvm_serenity.search.outcome import Outcome

SEARCH_SHARE = 0.7
MANY_OPS = 20_000
"""Number of ops from which an order is not placed after Ctrl-C."""
PLACE_S = 6e-6
"""Seconds per op of a large graph to compute its live ranges."""
PLACE_RANGES = 5
"""Time to prepare the placement, as a multiple of the time for the live ranges."""
ROUNDS = 2_000
"""Number of orders that the local search tries."""


@dataclass(frozen=True)
class Joint:
    """An order with its placement and the outcome for its arena.

    ``schedule.peak_bytes``: the peak of this order. ``schedule.lower_bound_bytes``: a lower bound
    on the arena of every order. ``outcome``: *optimal* if the arena equals that bound.
    ``orders_tried``: the number of orders that were placed.
    """

    schedule: Schedule
    ranges: tuple[LiveRange, ...]
    plan: Plan
    outcome: Outcome
    orders_tried: int

    @property
    def fragmentation_bytes(self) -> int:
        """The number of bytes by which the arena exceeds the order's peak."""
        return self.plan.arena_bytes - self.schedule.peak_bytes

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the search for the order or its placement."""
        return self.schedule.interrupted or self.plan.interrupted

    @staticmethod
    def of(ordered: Schedule, ranges: tuple[LiveRange, ...], placed: Plan, tried: int) -> "Joint":
        """Return the order ``ordered`` with its placement, and compute the outcome."""
        proved = placed.is_placed and placed.arena_bytes == ordered.lower_bound_bytes
        outcome = Outcome.OPTIMAL if proved else Outcome.FEASIBLE
        if not proved and ordered.outcome is Outcome.INFEASIBLE:
            outcome = Outcome.INFEASIBLE
        return Joint(ordered, ranges, placed, outcome, tried)


Placed = tuple[tuple[LiveRange, ...], Plan]
Placer = Callable[[Sequence[int]], Placed]
"""A function that returns the live ranges and the placement of an order of the graph's ops."""


def buffers_of(ranges: Sequence[LiveRange], align: int) -> FreeBuffers:
    """Return one buffer of alignment ``align`` for each live range."""
    count = len(ranges)
    start, stop, size = (
        ints(map(attrgetter(field), ranges), count) for field in ("start", "stop", "size_bytes")
    )
    alignment = np.full(count, align, dtype=np.int64)
    return FreeBuffers(BufferColumns([r.name for r in ranges], start, stop, size, alignment))


def place_order(
    graph: Graph, order: Sequence[int] | None, align: int = 1, options: PlanOptions | None = None
) -> tuple[tuple[LiveRange, ...], Plan]:
    """Return the live ranges of ``graph`` under ``order``, and a plan with an offset for each.

    With ``keep_on_interrupt``, Ctrl-C before any placement returns no ranges and no offsets.
    """
    return _placed(graph, order, align, options or PlanOptions(), hurry=False)


def place_in_time(
    graph: Graph, order: Sequence[int] | None, align: int = 1, options: PlanOptions | None = None
) -> Placed:
    """Return the result of :func:`place_order`, or None if the graph is large and time is short."""
    return _placed(graph, order, align, options or PlanOptions(), hurry=True)


def _placed(
    graph: Graph, order: Sequence[int] | None, align: int, options: PlanOptions, hurry: bool
) -> Placed:
    late, count = replace(Plan.unplaced(), statistics={"limit": "time"}), len(graph.ops)
    if hurry and too_late_for(count, PLACE_S):
        return (), late
    try:
        began = time.monotonic()
        ranges = live_ranges(graph, order)
        each_s = (time.monotonic() - began) / max(count, 1)
        if hurry and too_late_for(count, PLACE_RANGES * each_s):
            return (), late
        return ranges, plan(buffers_of(ranges, align), options=options)
    except KeyboardInterrupt:
        if not options.keep_on_interrupt:
            raise
        return (), Plan.unplaced()


def schedule_for_arena(
    graph: Graph,
    method: str = "auto",
    options: Options | None = None,
    *,
    align: int = 1,
    rounds: int = ROUNDS,
    seed: int = 0,
    given: Placed | None = None,
) -> Joint:
    """Return the order of ``graph`` with the smallest arena over all orders that are tried.

    ``given``: the placement of the given order, if the caller has already computed it. The time
    limit of ``options`` is for all steps: the order search may use ``SEARCH_SHARE`` of it, or of
    the time until a deadline, and the placement the rest. The order of a large graph is not placed
    after Ctrl-C, or if the time left is too short for it.
    """
    options = options or Options()
    with within(options.time_limit_s):
        with within(None, SEARCH_SHARE):
            ordered = schedule(graph, method, options)
        if ordered.interrupted and len(graph.ops) >= MANY_OPS:
            return Joint.of(ordered, (), Plan.unplaced(), 1)
        with within(0.0 if ordered.interrupted else None):
            placing = PlanOptions(keep_on_interrupt=options.keep_on_interrupt)
            with within(None, SEARCH_SHARE if rounds else 1.0):
                late = given is not None and given[1].statistics.get("limit") == "time"
                known = given if ordered.is_given and not late else None
                ranges, placed = known or place_in_time(graph, ordered.order, align, placing)
            best = Joint.of(ordered, ranges, placed, 1)
            if best.outcome is Outcome.OPTIMAL or rounds == 0 or best.interrupted:
                return best
            quick = replace(placing, time_limit_s=0.2)
            return improve_arena(
                graph,
                best,
                lambda order: place_order(graph, order, align, quick),
                rounds=rounds,
                seed=seed,
            )


def improve_arena(
    graph: Graph,
    best: Joint,
    place: Placer,
    *,
    rounds: int = ROUNDS,
    places: int | None = None,
    seed: int = 0,
) -> Joint:
    """Search orders similar to ``best`` for a smaller arena; return the best result.

    The search tries ``rounds`` orders, and ``place`` places up to ``places`` of them, until the
    deadline.
    """
    rng = random.Random(seed)
    problem = problem_of(graph)
    position = {op: i for i, op in enumerate(problem.ops)}
    order = [position[op] for op in best.schedule.order if op in position]
    current, placings = best.plan.arena_bytes, 0
    for tried in range(2, rounds + 2):
        if best.outcome is Outcome.OPTIMAL or placings == places:
            break
        if seconds_left() == 0:
            return replace(best, outcome=Outcome.TIMEOUT)
        candidate = _moved(problem, order, rng)
        peak = peak_of(problem, candidate)
        if peak > current or candidate == order:
            continue
        full = complete_order(graph, [problem.ops[i] for i in candidate])
        ranges, placed = place(full)
        placings += 1
        if placed.interrupted:
            return replace(best, plan=_ended(best.plan), outcome=Outcome.TIMEOUT)
        if placed.arena_bytes <= current:
            order, current = candidate, placed.arena_bytes
        if placed.arena_bytes < best.plan.arena_bytes:
            better = replace(best.schedule, order=full, peak_bytes=peak)
            better = replace(better, outcome=_outcome(better))
            best = Joint.of(better, ranges, placed, tried)
        best = replace(best, orders_tried=tried)
    return best


def _ended(best: Plan) -> Plan:
    """Return ``best``, marked as interrupted by Ctrl-C."""
    return replace(best, statistics={**best.statistics, "limit": "interrupt"})


def _outcome(ordered: Schedule) -> Outcome:
    if ordered.peak_bytes == ordered.lower_bound_bytes:
        return Outcome.OPTIMAL
    return Outcome.FEASIBLE if ordered.outcome is Outcome.OPTIMAL else ordered.outcome


def _moved(problem: Problem, order: list[int], rng: random.Random) -> list[int]:
    """Return ``order`` with one op or several consecutive ops moved to another valid position."""
    length = rng.choice((1, 1, 1, 2, 3))
    start = rng.randrange(max(1, len(order) - length + 1))
    block = order[start : start + length]
    rest = order[:start] + order[start + length :]
    place = {op: i for i, op in enumerate(rest)}
    before = [place[p] for op in block for p in problem.predecessors[op] if p in place]
    members = set(block)
    after = [i for i, op in enumerate(rest) if members & set(problem.predecessors[op])]
    first, last = max(before, default=-1) + 1, min(after, default=len(rest))
    at = rng.randint(first, last)
    return rest[:at] + block + rest[at:]
