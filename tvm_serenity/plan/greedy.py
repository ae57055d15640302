"""Greedy placement: places buffers one by one, each in the lowest gap in which it fits."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tvm_serenity.graph.arrays import Ints
from tvm_serenity.plan.problem import PlacementProblem

Order = Sequence[int]


def place_in_order(problem: PlacementProblem, order: Iterable[int]) -> Ints:
    """Return the offsets of first fit with gap filling in ``order``; fixed buffers come first.

    A buffer that may overlap a placed buffer is placed at its offset if no other buffer prevents
    it.
    """
    offsets = np.zeros(len(problem.index), dtype=np.int64)
    fixed = [i for i in range(len(offsets)) if problem.fixed[i] >= 0]
    shelf = Shelf(problem)
    for i in fixed:
        offsets[i] = problem.fixed[i]
        shelf.add(i, int(offsets[i]))
    for i in order:
        if problem.fixed[i] < 0:
            offsets[i] = shelf.fit(i)
            shelf.add(i, int(offsets[i]))
    return offsets


class Shelf:
    """The buffers placed so far in one address range, sorted by offset."""

    def __init__(self, problem: PlacementProblem) -> None:
        self.problem = problem
        self.placed = np.zeros(0, dtype=np.int64)
        self.starts = np.zeros(0, dtype=np.int64)

    def add(self, i: int, offset: int) -> None:
        """Place buffer ``i`` at ``offset`` without a check."""
        where = int(np.searchsorted(self.starts, offset))
        self.placed = np.insert(self.placed, where, i)
        self.starts = np.insert(self.starts, where, offset)

    def fit(self, i: int) -> int:
        """Return the offset of a buffer that ``i`` may overlap, or the lowest free offset."""
        p = self.problem
        meets = (p.lower[self.placed] < p.upper[i]) & (p.upper[self.placed] > p.lower[i])
        for j, free in p.partners[i]:
            if not free and (where := np.flatnonzero(self.placed == j)).size:
                start = int(self.starts[where[0]])
                others = meets & (self.placed != j)
                if start % p.alignment[i] == 0 and self._lowest(i, others, start) == start:
                    return start
            elif free:
                meets &= self.placed != j
        return self._lowest(i, meets, 0)

    def clear(self, i: int, at: int) -> bool:
        """Return whether buffer ``i`` may be placed at offset ``at``."""
        p = self.problem
        meets = (p.lower[self.placed] < p.upper[i]) & (p.upper[self.placed] > p.lower[i])
        for j, free in p.partners[i]:
            meets &= (self.placed != j) | (not free and self.starts != at)
        return self._lowest(i, meets, at) == at

    def _lowest(self, i: int, meets: "np.ndarray[tuple[int], np.dtype[np.bool_]]", at: int) -> int:
        """Return the lowest aligned offset from ``at`` on that is free of the buffers ``meets``."""
        p = self.problem
        if p.reach[i]:
            return self._lowest_of_pairs(i, meets, at)
        starts = self.starts[meets]
        ends = np.maximum.accumulate(starts + p.size[self.placed[meets]])
        step, size = int(p.alignment[i]), int(p.size[i])
        gaps = -(-np.concatenate(([at], np.maximum(ends, at))) // step) * step
        fits = np.flatnonzero(gaps[:-1] + size <= starts)
        return int(gaps[fits[0]] if fits.size else gaps[-1])

    def _lowest_of_pairs(
        self, i: int, meets: "np.ndarray[tuple[int], np.dtype[np.bool_]]", at: int
    ) -> int:
        """Return :meth:`_lowest` for a buffer with an overlap of the kind ``Overlap.BELOW``."""
        p, step = self.problem, int(self.problem.alignment[i])
        others = [
            (int(s), int(j)) for s, j in zip(self.starts[meets], self.placed[meets], strict=True)
        ]
        at, moved = -(-at // step) * step, True
        while moved:
            moved = False
            for start, j in others:
                if at + p.rise(i, j) > start and start + p.rise(j, i) > at:
                    at, moved = -(-(start + p.rise(j, i)) // step) * step, True
        return at


def arena_of(problem: PlacementProblem, offsets: Ints) -> int:
    """Return the size of the arena: the highest end of any buffer."""
    return int((offsets + problem.size).max(initial=0))


def _pressure(problem: PlacementProblem) -> Ints:
    """Return, for each buffer, the largest number of live bytes at any step of its lifetime."""
    rise = np.zeros(problem.sections + 1, dtype=np.int64)
    np.add.at(rise, problem.lower, problem.size)
    np.add.at(rise, problem.upper, -problem.size)
    load = np.cumsum(rise)
    return np.array(
        [load[lo:up].max() for lo, up in zip(problem.lower, problem.upper, strict=True)],
        dtype=np.int64,
    )


def _sorted_by(*keys: npt.NDArray[Any]) -> Order:
    """Return the indices by decreasing first key, then by the next keys, then by index."""
    return [int(i) for i in np.lexsort([-key for key in reversed(keys)])]


def by_size(p: PlacementProblem) -> Order:
    """Return the buffers by decreasing size, as TVM USMP and TFLite do, with gap filling."""
    return _sorted_by(p.size, p.upper - p.lower)


def by_lifetime(p: PlacementProblem) -> Order:
    """Return the buffers by decreasing lifetime."""
    return _sorted_by(p.upper - p.lower, p.size)


def by_area(p: PlacementProblem) -> Order:
    """Return the buffers by decreasing product of size and lifetime."""
    return _sorted_by((p.upper - p.lower).astype(np.float64) * p.size, p.size)


def by_conflict(p: PlacementProblem) -> Order:
    """Return the buffers by decreasing live bytes during their lifetime, then by size."""
    return _sorted_by(_pressure(p), p.size, p.upper - p.lower)


def by_end(p: PlacementProblem) -> Order:
    """Return the buffers by decreasing end, so that an output is placed before its inputs."""
    return _sorted_by(p.upper, p.lower, p.size)


def by_start(p: PlacementProblem) -> Order:
    """Return the buffers in the order of their start, as a run-time allocator would get them."""
    return _sorted_by(-p.lower, p.size)


ORDERS: dict[str, Callable[[PlacementProblem], Order]] = {
    "greedy_by_size": by_size,
    "greedy_by_lifetime": by_lifetime,
    "greedy_by_area": by_area,
    "greedy_by_conflict": by_conflict,
    "greedy_by_start": by_start,
    "greedy_by_end": by_end,
}
