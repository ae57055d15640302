"""Chooses which features to retain and which to recompute: the trade-off of memory and work.

Each set of recomputed features is one strategy. The search grows sets by one feature at a time, the
features with the most retained bytes first, and visits them by their work, least first. A larger
set takes at least as much work, and its certainly retained features at least as much memory. So a
set that can only grow into worse ones than known is dropped with all its supersets. The others are
ordered and placed. After ``MOST_SETS`` sets, or at the deadline, a greedy chain continues: it adds
the feature that saves most bytes for its work each time. Its points are not proved optimal, and
state a lower bound over all sets.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush

from tvm_serenity.rows.limits import Limits
from tvm_serenity.search.deadline import seconds_left
from tvm_serenity.search.outcome import Outcome
from tvm_serenity.sliding.steady import MovedWindow, Steady
from tvm_serenity.sliding.step import SlidingStep, least_bytes, sliding_step

MOST_SETS = 4_096
"""Limit on the sets of features that are visited, least work first."""


@dataclass(frozen=True)
class StepPoint:
    """A step that no other beats in both work and arena; ``work`` is a share of a full window's.

    ``again``: the features that are recomputed although they could be retained. ``least_bytes``: a
    lower bound on the arena of every set of this work, or less.
    """

    step: SlidingStep
    work: float
    again: tuple[int, ...]
    least_bytes: int

    @property
    def outcome(self) -> Outcome:
        """Whether the arena is proved smallest for this work."""
        proved = self.step.arena_bytes == self.least_bytes
        return Outcome.OPTIMAL if proved else Outcome.FEASIBLE


def work_of(steady: Steady, operations: Sequence[float]) -> float:
    """Return the operations of a step as a share of those of a full window."""
    computed = sum(
        count * steady.rows_computed(i) / max(1, steady.rows_in_all(i))
        for i, count in enumerate(operations)
    )
    return computed / max(sum(operations), 1e-30)


def curve(
    moved: MovedWindow,
    operations: Sequence[float],
    limits: Limits | None = None,
    most_ways: int = MOST_SETS,
) -> tuple[StepPoint, ...]:
    """Return the Pareto-optimal steps by increasing work and decreasing memory."""
    return _Curve(moved, operations, limits).points(most_ways)


def within_bytes(points: Sequence[StepPoint], ram_bytes: int) -> StepPoint | None:
    """Return the step of least work whose arena is at most ``ram_bytes``, or None."""
    return next((point for point in points if point.step.arena_bytes <= ram_bytes), None)


@dataclass(frozen=True, order=True)
class _Way:
    """A set of recomputed features; ``last`` is the index of its last one among all candidates.

    ``surely_bytes``: memory of features that this set, and all sets that it may grow into, retain.
    """

    work: float
    kept_bytes: int
    again: tuple[int, ...]
    last: int
    surely_bytes: int
    steady: Steady = field(compare=False)


class _Curve:
    def __init__(
        self, moved: MovedWindow, operations: Sequence[float], limits: Limits | None
    ) -> None:
        self.moved, self.operations, self.limits = moved, operations, limits
        kept = moved.steady().feature_bytes
        self.features = sorted(moved.may_be_kept, key=lambda f: (-kept[f], f))
        self.front: list[StepPoint] = []
        self.bounds: list[tuple[float, int]] = []
        """Work and lower bound of all steps that were ordered."""
        self.seen = set[object]()

    def points(self, most_ways: int) -> tuple[StepPoint, ...]:
        """Return the Pareto front: proved up to ``most_ways`` sets, then a greedy chain."""
        way = self.way((), -1)
        heap, looked_at = [way], 0
        while heap and looked_at < most_ways and seconds_left() > 0:
            way = heappop(heap)
            looked_at += 1
            if way.surely_bytes >= self.arena_bytes:
                continue
            self.look(way)
            for last in range(way.last + 1, len(self.features)):
                more = self.way((*way.again, self.features[last]), last)
                if more.surely_bytes < self.arena_bytes:
                    heappush(heap, more)
        if heap:
            self.chain(heap)
        if not self.front:  # no time is left, but there must be one step
            self.look(way)
        return tuple(self.proved(point, heap) for point in self.front)

    def way(self, again: tuple[int, ...], last: int) -> _Way:
        steady = self.moved.steady(frozenset(again))
        size = steady.feature_bytes
        surely = size[self.moved.source] + sum(size[f] for f in self.features[: last + 1])
        work = work_of(steady, self.operations)
        return _Way(work, steady.kept_bytes, again, last, surely, steady)

    @property
    def arena_bytes(self) -> float:
        """The smallest known arena."""
        return self.front[-1].step.arena_bytes if self.front else float("inf")

    def look(self, way: _Way) -> None:
        """Order and place a set, unless a simple bound shows that it beats no known arena."""
        if way.steady.kept in self.seen or way.kept_bytes >= self.arena_bytes:
            return
        self.seen.add(way.steady.kept)
        if least_bytes(way.steady) >= self.arena_bytes:
            return
        step = sliding_step(way.steady, self.limits)
        self.bounds.append((way.work, step.streaming.lower_bound_bytes))
        if step.arena_bytes < self.arena_bytes:
            if self.front and self.front[-1].work == way.work:
                self.front.pop()
            self.front.append(StepPoint(step, way.work, way.again, 0))

    def chain(self, heap: Sequence[_Way]) -> None:
        """Continue from the set of least work, with one more recomputed feature each time."""
        way, remaining = self.way((), -1), list(self.features)
        done = heap[0].work
        while remaining and seconds_left() > 0:
            ways = [self.way((*way.again, f), -1) for f in remaining]
            before = way
            way = max(ways, key=lambda grown: _gain(before, grown))
            remaining.remove(way.again[-1])
            if way.work >= done:
                self.look(way)

    def proved(self, point: StepPoint, heap: Sequence[_Way]) -> StepPoint:
        """Return the point with its lower bound over all sets of its work, visited or not."""
        bounds = [point.step.arena_bytes, *(b for work, b in self.bounds if work <= point.work)]
        bounds += [way.surely_bytes for way in heap if way.work <= point.work]
        return replace(point, least_bytes=min(bounds))


def _gain(before: _Way, after: _Way) -> float:
    """Return the bytes saved per unit of additional work."""
    return (before.kept_bytes - after.kept_bytes) / max(after.work - before.work, 1e-9)
