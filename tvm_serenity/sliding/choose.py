"""What to keep and what to make again: the least memory for the work, and the least work for it.

Every set of features that are made again is a way to run the network. Sets grow by one feature at
a time, those that keep most first, and are gone through by their work, least first. A set that is
larger makes no less work, and what it surely keeps takes no less memory: so sets that can only grow
into worse ones than are known are left out, with all that they might grow into. What is left is
ordered and placed. After ``MOST_WAYS`` sets, at the deadline, a chain of sets goes on that makes
one feature more again each time, the one that saves most bytes for its work: its points are
found, not proved least, and say what no other set can be below.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush

from tvm_serenity.rows.limits import Limits
from tvm_serenity.search.deadline import seconds_left
from tvm_serenity.search.outcome import Outcome
from tvm_serenity.sliding.steady import MovedWindow, Steady
from tvm_serenity.sliding.step import SlidingStep, least_bytes, sliding_step

MOST_WAYS = 4_096
"""Sets of features that are gone through, least work first."""


@dataclass(frozen=True)
class StepPoint:
    """A step that no other beats in work and arena; ``work``: operations, a whole window's are 1.

    ``again``: the features of which rows would stay, and none is kept. ``least_bytes``: no way of
    this work, or less, has a smaller arena than that.
    """

    step: SlidingStep
    work: float
    again: tuple[int, ...]
    least_bytes: int

    @property
    def outcome(self) -> Outcome:
        """Whether no way of this work needs less."""
        proved = self.step.arena_bytes == self.least_bytes
        return Outcome.OPTIMAL if proved else Outcome.FEASIBLE


def work_of(steady: Steady, operations: Sequence[float]) -> float:
    """Return the operations of a step, as a share of those of a whole window."""
    made = sum(
        count * steady.rows_made(i) / max(1, steady.rows_in_all(i))
        for i, count in enumerate(operations)
    )
    return made / max(sum(operations), 1e-30)


def curve(
    moved: MovedWindow,
    operations: Sequence[float],
    limits: Limits | None = None,
    most_ways: int = MOST_WAYS,
) -> tuple[StepPoint, ...]:
    """Return the steps that no other beats, least work first, each with less memory than before."""
    return _Curve(moved, operations, limits).found(most_ways)


def within_bytes(points: Sequence[StepPoint], ram_bytes: int) -> StepPoint | None:
    """Return the step of least work whose arena has so many bytes at most; None: none has."""
    return next((one for one in points if one.step.arena_bytes <= ram_bytes), None)


@dataclass(frozen=True, order=True)
class _Way:
    """A set of features made again: ``last`` is the place of the last one among all that may be.

    ``surely_bytes``: what it keeps of features before that, and all sets that it may grow into.
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

    def found(self, most_ways: int) -> tuple[StepPoint, ...]:
        """Return the front: proved as far as ``most_ways`` reach, then a chain."""
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
        if not self.front:  # no time is left: a way is there all the same
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
        """The smallest arena that is known."""
        return self.front[-1].step.arena_bytes if self.front else float("inf")

    def look(self, way: _Way) -> None:
        """Order and place a way, unless its blocks alone, or a call of it, need what is known."""
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
        """Go on from the way of least work, one feature more made again each time."""
        way, rest = self.way((), -1), list(self.features)
        done = heap[0].work
        while rest and seconds_left() > 0:
            ways = [self.way((*way.again, f), -1) for f in rest]
            before = way
            way = max(ways, key=lambda one: _gain(before, one))
            rest.remove(way.again[-1])
            if way.work >= done:
                self.look(way)

    def proved(self, point: StepPoint, heap: Sequence[_Way]) -> StepPoint:
        """The point with what no way of its work, looked at or not, can be below."""
        bounds = [point.step.arena_bytes, *(b for work, b in self.bounds if work <= point.work)]
        bounds += [way.surely_bytes for way in heap if way.work <= point.work]
        return replace(point, least_bytes=min(bounds))


def _gain(before: _Way, after: _Way) -> float:
    """Bytes saved for the work that it takes."""
    return (before.kept_bytes - after.kept_bytes) / max(after.work - before.work, 1e-9)
