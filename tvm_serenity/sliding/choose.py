"""Chooses which features to retain and which to recompute: a trade-off of memory and work.

The search visits sets of recomputed features by increasing work, and grows each set by one feature
at a time, features with the most retained bytes first. A superset takes at least as much work. The
features before the last added one are decided, so the decided retained features give a lower bound
on the memory of all supersets that grow from a set. If that bound is no better than the smallest
known arena, the set is dropped together with them. All other sets are ordered and placed.

After ``MOST_SETS`` sets, or at the deadline, a greedy chain continues: it adds the feature that
saves the most bytes per additional work, again and again. The points of the chain are not proved
optimal; each has a lower bound over all sets.
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
"""Limit on the number of sets of features that are visited before the greedy chain."""


@dataclass(frozen=True)
class StepPoint:
    """A Pareto-optimal step: no other known step has both less work and a smaller arena.

    ``work``: operations as a fraction of a full window's. ``again``: the features that are
    recomputed although they could be retained. ``least_bytes``: a lower bound on the arena of all
    steps with at most this work.
    """

    step: SlidingStep
    work: float
    again: tuple[int, ...]
    least_bytes: int

    @property
    def outcome(self) -> Outcome:
        """*Optimal* if the arena equals its lower bound, else *feasible*."""
        proved = self.step.arena_bytes == self.least_bytes
        return Outcome.OPTIMAL if proved else Outcome.FEASIBLE


def work_of(steady: Steady, operations: Sequence[float]) -> float:
    """Return the operations of a step as a fraction of the operations of a full window.

    ``operations``: the number of operations of each layer on a full window.
    """
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
    """Return the Pareto-optimal steps, by increasing work and decreasing arena.

    ``operations``: the number of operations of each layer on a full window. ``most_ways``: the
    number of sets to visit before the greedy chain.
    """
    return _Curve(moved, operations, limits).points(most_ways)


def within_bytes(points: Sequence[StepPoint], ram_bytes: int) -> StepPoint | None:
    """Return the point with the least work whose arena is at most ``ram_bytes``, or None."""
    return next((point for point in points if point.step.arena_bytes <= ram_bytes), None)


@dataclass(frozen=True, order=True)
class _FeatureSet:
    """A set of recomputed features.

    ``last``: the index in ``_Curve.features`` of the feature that was added last. ``surely_bytes``:
    bytes of the features that this set retains and that the search never adds to it.
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
        """The work and the lower bound in bytes of each step that was ordered."""
        self.seen = set[object]()

    def points(self, most_ways: int) -> tuple[StepPoint, ...]:
        """Return the Pareto front after a visit of ``most_ways`` sets and the greedy chain."""
        candidate = self.candidate((), -1)
        heap, visited = [candidate], 0
        while heap and visited < most_ways and seconds_left() > 0:
            candidate = heappop(heap)
            visited += 1
            if candidate.surely_bytes >= self.arena_bytes:
                continue
            self.visit(candidate)
            for last in range(candidate.last + 1, len(self.features)):
                more = self.candidate((*candidate.again, self.features[last]), last)
                if more.surely_bytes < self.arena_bytes:
                    heappush(heap, more)
        if heap:
            self.chain(heap)
        if not self.front:  # The time limit has passed, but the front must have one step.
            self.visit(candidate)
        return tuple(self.proved(point, heap) for point in self.front)

    def candidate(self, again: tuple[int, ...], last: int) -> _FeatureSet:
        steady = self.moved.steady(frozenset(again))
        size = steady.feature_bytes
        surely = size[self.moved.source] + sum(size[f] for f in self.features[: last + 1])
        work = work_of(steady, self.operations)
        return _FeatureSet(work, steady.kept_bytes, again, last, surely, steady)

    @property
    def arena_bytes(self) -> float:
        """The smallest known arena."""
        return self.front[-1].step.arena_bytes if self.front else float("inf")

    def visit(self, candidate: _FeatureSet) -> None:
        """Order and place the step of a set; add it to the front if its arena is the smallest.

        Sets whose retained bytes or simple lower bound exceed the smallest arena are skipped.
        """
        if candidate.steady.kept in self.seen or candidate.kept_bytes >= self.arena_bytes:
            return
        self.seen.add(candidate.steady.kept)
        if least_bytes(candidate.steady) >= self.arena_bytes:
            return
        step = sliding_step(candidate.steady, self.limits)
        self.bounds.append((candidate.work, step.streaming.lower_bound_bytes))
        if step.arena_bytes < self.arena_bytes:
            if self.front and self.front[-1].work == candidate.work:
                self.front.pop()
            self.front.append(StepPoint(step, candidate.work, candidate.again, 0))

    def chain(self, heap: Sequence[_FeatureSet]) -> None:
        """Add points of the greedy chain, which begins with no recomputed feature.

        The chain adds one recomputed feature each time. Sets that the search has visited already
        are skipped.
        """
        candidate, remaining = self.candidate((), -1), list(self.features)
        done = heap[0].work
        while remaining and seconds_left() > 0:
            candidates = [self.candidate((*candidate.again, f), -1) for f in remaining]
            before = candidate
            candidate = max(candidates, key=lambda grown: _gain(before, grown))
            remaining.remove(candidate.again[-1])
            if candidate.work >= done:
                self.visit(candidate)

    def proved(self, point: StepPoint, heap: Sequence[_FeatureSet]) -> StepPoint:
        """Return ``point`` with a lower bound over all sets of at most its work.

        ``heap``: the sets that were not visited.
        """
        bounds = [point.step.arena_bytes, *(b for work, b in self.bounds if work <= point.work)]
        bounds += [candidate.surely_bytes for candidate in heap if candidate.work <= point.work]
        return replace(point, least_bytes=min(bounds))


def _gain(before: _FeatureSet, after: _FeatureSet) -> float:
    """Return the retained bytes that ``after`` saves per unit of additional work."""
    return (before.kept_bytes - after.kept_bytes) / max(after.work - before.work, 1e-9)
