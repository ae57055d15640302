"""Order and placement together: among several orders, the one with the smallest arena.

The least peak of any order is a lower bound on every arena. So the search finds the order of least
peak and places it; if the arena equals the bound, it is optimal. If fragmentation is left, a local
search tries other orders: an op moves within the steps that its neighbours in the graph leave free.
Orders whose peak cannot beat the best arena are skipped, the others are placed.
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
"""Orders of at least this many ops are not placed after Ctrl-C."""
PLACE_S = 6e-6
"""Seconds per op of a large graph to compute its live ranges."""
PLACE_RANGES = 5
"""Time to prepare the placement as a multiple of the time for the live ranges, on a busy machine.
"""
ROUNDS = 2_000
"""Orders that the local search tries unless the time ends first."""


@dataclass(frozen=True)
class Joint:
    """An order with its placement, and the proof status of its arena.

    ``schedule.peak_bytes`` is this order's peak; its ``lower_bound_bytes`` bounds the arena of
    every order. ``outcome`` is the arena's: *optimal* iff the arena equals that bound.
    """

    schedule: Schedule
    ranges: tuple[LiveRange, ...]
    plan: Plan
    outcome: Outcome
    orders_tried: int

    @property
    def fragmentation_bytes(self) -> int:
        """Bytes of the arena above the order's peak."""
        return self.plan.arena_bytes - self.schedule.peak_bytes

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the search for the order or its placement."""
        return self.schedule.interrupted or self.plan.interrupted

    @staticmethod
    def of(ordered: Schedule, ranges: tuple[LiveRange, ...], placed: Plan, tried: int) -> "Joint":
        """Return an order with its placement; optimal if the arena equals the order's bound."""
        proved = placed.is_placed and placed.arena_bytes == ordered.lower_bound_bytes
        outcome = Outcome.OPTIMAL if proved else Outcome.FEASIBLE
        if not proved and ordered.outcome is Outcome.INFEASIBLE:
            outcome = Outcome.INFEASIBLE
        return Joint(ordered, ranges, placed, outcome, tried)


Placed = tuple[tuple[LiveRange, ...], Plan]
Placer = Callable[[Sequence[int]], Placed]
"""A function from an order of the graph's ops to its live ranges and their placement."""


def buffers_of(ranges: Sequence[LiveRange], align: int) -> FreeBuffers:
    """Return the buffers to place for ``ranges``, in their order."""
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
    """Return :func:`place_order`'s result; nothing for a large graph with too little time."""
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
    """Return an order of ``graph`` with its placement, the smallest arena over the orders tried.

    ``given`` is the placement of the given order, if the caller has computed it already. The time
    limit of ``options`` is for all steps together: at most ``SEARCH_SHARE`` of it, and of the time
    until a deadline, is for the order, the rest for its placement. After Ctrl-C, or with too little
    time left, the order of a large graph is not placed, because that would exceed the limit.
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
    """Return ``best`` or a better order near it; ``place`` places each candidate.

    The search tries ``rounds`` orders and places up to ``places`` of them, unless the time ends
    first.
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
    """Return the best placement, marked as interrupted by Ctrl-C."""
    return replace(best, statistics={**best.statistics, "limit": "interrupt"})


def _outcome(ordered: Schedule) -> Outcome:
    if ordered.peak_bytes == ordered.lower_bound_bytes:
        return Outcome.OPTIMAL
    return Outcome.FEASIBLE if ordered.outcome is Outcome.OPTIMAL else ordered.outcome


def _moved(problem: Problem, order: list[int], rng: random.Random) -> list[int]:
    """Return the order with one op, or a run of ops, moved to another valid place."""
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
