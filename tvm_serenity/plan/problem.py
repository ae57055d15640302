"""Prepares buffers for the planners: only buffers that need memory, with lifetimes in sections.

A section stands for consecutive steps with the same live set. Only sections with a maximal live set
(the maximal cliques of the interval graph) are kept. Two buffers are live at a common step if and
only if they are live in one of these sections, so conflicts and bounds remain exact.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tvm_serenity.graph.arrays import Ints
from tvm_serenity.plan.buffers import MAX_BYTES, Buffer, Overlap, check_buffers
from tvm_serenity.plan.columns import BufferColumns, FreeBuffers, constrained


@dataclass(frozen=True, slots=True)
class Numbers:
    """Columns as Python lists, for loops over single buffers."""

    size: list[int]
    alignment: list[int]
    fixed: list[int]


@dataclass(frozen=True)
class PlacementProblem:
    """The buffers that need memory; ``index`` has their positions in ``buffers``.

    ``lower`` and ``upper``: lifetimes in sections, half open. ``fixed``: fixed offsets, or -1.
    ``partners[i]``: pairs of a buffer j that may share bytes with i, and whether any overlap is
    allowed. ``below[i]``: maps each buffer below which i may start to the least distance of the
    starts in bytes.
    """

    buffers: Sequence[Buffer]
    index: tuple[int, ...]
    lower: Ints
    upper: Ints
    size: Ints
    alignment: Ints
    fixed: Ints
    partners: tuple[tuple[tuple[int, bool], ...], ...]
    sections: int
    below: tuple[dict[int, int], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the buffers to place."""
        return tuple(self.buffers[i].name for i in self.index)

    @cached_property
    def plain(self) -> Numbers:
        """Sizes, alignments and fixed offsets as lists."""
        return Numbers(self.size.tolist(), self.alignment.tolist(), self.fixed.tolist())

    @cached_property
    def live(self) -> tuple[tuple[int, ...], ...]:
        """For each section, the live buffers, ascending."""
        members: list[list[int]] = [[] for _ in range(self.sections)]
        for i, (lower, upper) in enumerate(zip(self.lower, self.upper, strict=True)):
            for section in range(lower, upper):
                members[section].append(i)
        return tuple(map(tuple, members))

    @cached_property
    def load(self) -> Ints:
        """For each section, the sum of the sizes of buffers that may not overlap any other."""
        alone = self.size.copy()
        alone[list(self.sharing)] = 0
        return self.total(alone)

    def total(self, values: Ints) -> Ints:
        """Return, for each section, the sum of ``values`` over its live buffers."""
        rise = np.zeros(self.sections + 1, dtype=np.int64)
        np.add.at(rise, self.lower, values)
        np.add.at(rise, self.upper, -values)
        return np.cumsum(rise)[: self.sections]

    @cached_property
    def reach(self) -> tuple[frozenset[int], ...]:
        """For each buffer, the buffers below which it may start, or that may start below it."""
        if not any(self.below):
            return (frozenset(),) * len(self.below)
        reaching = [set(above) for above in self.below]
        for i, above in enumerate(self.below):
            for j in above:
                reaching[j].add(i)
        return tuple(map(frozenset, reaching))

    @cached_property
    def sharing(self) -> frozenset[int]:
        """The buffers that may share bytes with another one."""
        if not any(self.partners) and not any(self.below):
            return frozenset()
        return frozenset(i for i in range(len(self.index)) if self.shares(i))

    def shares(self, i: int) -> bool:
        """Return whether buffer ``i`` may share bytes with another one."""
        return bool(self.partners[i] or self.reach[i])

    def rise(self, i: int, j: int) -> int:
        """Return the least distance from the start of ``i`` to the start of a higher ``j``."""
        return self.below[i].get(j, int(self.size[i]))

    def live_in(self, section: int) -> tuple[int, ...]:
        """Return the live buffers of ``section``, ascending."""
        return tuple(
            int(i) for i in np.flatnonzero((self.lower <= section) & (self.upper > section))
        )

    def restore(self, placed: Sequence[int] | Ints) -> tuple[int, ...]:
        """Return the offsets of all ``buffers``; an empty buffer has its fixed offset or 0."""
        given = np.asarray(placed).tolist()
        if len(self.index) == len(self.buffers):
            return tuple(given)
        offsets = [0] * len(self.buffers)
        for i, buffer in enumerate(constrained(self.buffers)):
            offsets[i] = buffer.offset or 0
        for i, offset in zip(self.index, given, strict=True):
            offsets[i] = offset
        return tuple(offsets)


def prepare(buffers: Sequence[Buffer], alignment: int = 1) -> PlacementProblem:
    """Return the placement problem of ``buffers``.

    Raises :class:`InputError` if buffers contradict each other.
    """
    given = BufferColumns.of(buffers)
    size, first, last, step = given.size_bytes, given.lower, given.upper, given.alignment
    free = all(b.offset is None and b.may_overlap is None for b in constrained(buffers))
    most = (int(size.max(initial=0)) + int(step.max(initial=1)) + alignment) * len(size)
    if not free or most > MAX_BYTES or len(set(given.name)) < len(size):
        check_buffers(buffers, alignment)
    costs = (size > 0) & (first < last)
    index = tuple(np.flatnonzero(costs).tolist())
    lower, upper, sections = _sections(first[costs], last[costs])
    fixed = np.full(len(index), -1, dtype=np.int64)
    chosen = () if free else [buffers[i] for i in index]
    if not free:
        fixed[:] = [-1 if b.offset is None else b.offset for b in chosen]
    return PlacementProblem(
        buffers=buffers if isinstance(buffers, FreeBuffers) else tuple(buffers),
        index=index,
        lower=lower,
        upper=upper,
        size=size[costs],
        alignment=_aligned(step[costs], alignment),
        fixed=fixed,
        partners=((),) * len(index) if free else _partners(chosen),
        sections=sections,
        below=({},) * len(index) if free else _below(chosen),
    )


def _aligned(alignment: Ints, least: int) -> Ints:
    """Return the least common multiple of each alignment and ``least``."""
    if (alignment == alignment[:1]).all():  # All alignments are equal, or there are none.
        return np.full(len(alignment), math.lcm(least, *alignment[:1].tolist()), dtype=np.int64)
    return np.array([math.lcm(one, least) for one in alignment.tolist()], dtype=np.int64)


def _sections(lower: Ints, upper: Ints) -> tuple[Ints, Ints, int]:
    """Return lifetimes as ranges of maximal live sets, and the number of these sets.

    A live set is maximal if a buffer ends after it, and a buffer began since the last maximal set.
    At each step, ends come before begins.
    """
    lower, upper, steps = _close_together(lower, upper)
    comes, leaves = (np.bincount(at, minlength=steps) > 0 for at in (lower, upper))
    events = np.flatnonzero(comes | leaves)
    came = np.concatenate([[False], comes[events]])[:-1]
    ended = np.zeros(steps, dtype=np.int64)
    ended[events] = leaves[events] & came
    section = np.cumsum(ended)
    return section[lower], section[upper], int(ended.sum())


def _close_together(lower: Ints, upper: Ints) -> tuple[Ints, Ints, int]:
    """Return the lifetimes with steps renumbered from 0 without gaps, and the number of steps.

    The number of steps is then of the order of the number of buffers.
    """
    count = len(lower)
    first, last = int(lower.min(initial=0)), int(upper.max(initial=0))
    if last - first > 8 * count:
        at, steps = np.unique(np.concatenate([lower, upper]), return_inverse=True)
        return steps[:count], steps[count:], len(at)
    return lower - first, upper - first, last - first + 1


def _partners(buffers: Sequence[Buffer]) -> tuple[tuple[tuple[int, bool], ...], ...]:
    position = {buffer.name: i for i, buffer in enumerate(buffers)}
    sharing: list[dict[int, bool]] = [{} for _ in buffers]
    for i, buffer in enumerate(buffers):
        j = position.get(buffer.may_overlap or "", -1) if buffer.may_overlap is not None else -1
        if j < 0 or buffer.lower >= buffers[j].upper or buffers[j].lower >= buffer.upper:
            continue
        if buffer.overlap is Overlap.BELOW:
            continue
        free = buffer.overlap is Overlap.ANY
        sharing[i][j] = sharing[j][i] = free or sharing[i].get(j, False)
    return tuple(tuple(sorted(f.items())) for f in sharing)


def _below(buffers: Sequence[Buffer]) -> tuple[dict[int, int], ...]:
    """Return, for each buffer, a map of the buffers below which it may start to the distance."""
    reached: list[dict[int, int]] = [{} for _ in buffers]
    position = {buffer.name: i for i, buffer in enumerate(buffers)}
    for i, buffer in enumerate(buffers):
        if buffer.may_overlap is None or buffer.overlap is not Overlap.BELOW:
            continue
        j = position.get(buffer.may_overlap, -1)
        if j < 0 or buffer.lower >= buffers[j].upper or buffers[j].lower >= buffer.upper:
            continue
        if buffer.distance_bytes < buffer.size_bytes:
            reached[i][j] = buffer.distance_bytes
    return tuple(reached)
