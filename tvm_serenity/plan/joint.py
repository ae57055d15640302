"""Order and placement together: among orders, one whose arena is least.

The least peak of any order bounds the arena of every order. So: find the order of least peak,
place it; where the arena equals the bound, that is proved optimal. Where fragmentation is left,
a local search looks at other orders: an op moves within the steps its neighbours in the graph
leave free, orders whose peak cannot beat the best arena are skipped, the others are placed.
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
"""Orders of so many ops are not placed after Ctrl-C."""
PLACE_S = 6e-6
"""Seconds an op until its live ranges are ready to be placed, of many ops."""
PLACE_RANGES = 5
"""What that takes beside the live ranges, as a multiple of what those took: machines are busy."""
ROUNDS = 2_000
"""Orders the local search looks at, unless time ends it first."""


@dataclass(frozen=True)
class Joint:
    """An order with its placement, and what is proved about the arena.

    ``schedule.peak_bytes`` is this order's; its ``lower_bound_bytes`` bounds the arena of every
    order. ``outcome`` is about the arena: *optimal* iff it equals that bound.
    """

    schedule: Schedule
    ranges: tuple[LiveRange, ...]
    plan: Plan
    outcome: Outcome
    orders_tried: int

    @property
    def fragmentation_bytes(self) -> int:
        """Arena bytes above the order's peak."""
        return self.plan.arena_bytes - self.schedule.peak_bytes

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the search for the order or a placement."""
        return self.schedule.interrupted or self.plan.interrupted

    @staticmethod
    def of(found: Schedule, ranges: tuple[LiveRange, ...], placed: Plan, tried: int) -> "Joint":
        """Return an order with its placement; proved where that equals the order's bound."""
        proved = placed.is_placed and placed.arena_bytes == found.lower_bound_bytes
        outcome = Outcome.OPTIMAL if proved else Outcome.FEASIBLE
        if not proved and found.outcome is Outcome.INFEASIBLE:
            outcome = Outcome.INFEASIBLE
        return Joint(found, ranges, placed, outcome, tried)


Placed = tuple[tuple[LiveRange, ...], Plan]
Placer = Callable[[Sequence[int]], Placed]
"""From an order of the graph's ops to live ranges and a placement of them."""


def buffers_of(ranges: Sequence[LiveRange], align: int) -> FreeBuffers:
    """Return the buffers to place for live ranges, in their order."""
    count = len(ranges)
    start, stop, size = (
        ints(map(attrgetter(field), ranges), count) for field in ("start", "stop", "size_bytes")
    )
    alignment = np.full(count, align, dtype=np.int64)
    return FreeBuffers(BufferColumns([r.name for r in ranges], start, stop, size, alignment))


def place_order(
    graph: Graph, order: Sequence[int] | None, align: int = 1, options: PlanOptions | None = None
) -> tuple[tuple[LiveRange, ...], Plan]:
    """Return the live ranges of ``graph`` under ``order``, and an offset for each.

    With ``keep_on_interrupt`` Ctrl-C before any placement returns no ranges and no offsets.
    """
    return _placed(graph, order, align, options or PlanOptions(), hurry=False)


def place_in_time(
    graph: Graph, order: Sequence[int] | None, align: int = 1, options: PlanOptions | None = None
) -> Placed:
    """Return the same; of many ops no ranges and no offsets where the time left is too short."""
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
    """Return an order of ``graph`` and its placement with the least arena found.

    ``given`` is the placement of the given order, where it is known already.
    The time limit of ``options`` holds for all of it: ``SEARCH_SHARE`` of that, and what is left
    until a deadline, at most for the order, the rest for its placement. After Ctrl-C the order
    of many ops is not placed any more: that would take longer than anybody waits. Neither is it
    where the time that is left is too short to make it ready.
    """
    options = options or Options()
    with within(options.time_limit_s):
        with within(None, SEARCH_SHARE):
            found = schedule(graph, method, options)
        if found.interrupted and len(graph.ops) >= MANY_OPS:
            return Joint.of(found, (), Plan.unplaced(), 1)
        with within(0.0 if found.interrupted else None):
            placing = PlanOptions(keep_on_interrupt=options.keep_on_interrupt)
            with within(None, SEARCH_SHARE if rounds else 1.0):
                late = given is not None and given[1].statistics.get("limit") == "time"
                known = given if found.is_given and not late else None
                ranges, placed = known or place_in_time(graph, found.order, align, placing)
            best = Joint.of(found, ranges, placed, 1)
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
    """Return ``best`` or a better one among orders near it, each placed by ``place``.

    ``rounds`` orders are looked at, and ``places`` of them placed, unless time ends it first.
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
    """The best placement, of a search that Ctrl-C ended while it looked at another one."""
    return replace(best, statistics={**best.statistics, "limit": "interrupt"})


def _outcome(found: Schedule) -> Outcome:
    if found.peak_bytes == found.lower_bound_bytes:
        return Outcome.OPTIMAL
    return Outcome.FEASIBLE if found.outcome is Outcome.OPTIMAL else found.outcome


def _moved(problem: Problem, order: list[int], rng: random.Random) -> list[int]:
    """One op, or a run of ops, moved to another place that keeps the order valid."""
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
