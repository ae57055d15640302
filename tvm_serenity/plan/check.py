"""An independent checker of placements: compares each buffer with all live buffers, in time order.

It shares only the buffer classes with the planners. As long as no two buffers share bytes, live
buffers are disjoint, so they can be sorted by address, and the ones that overlap a new buffer are
adjacent. Buffers are checked in blocks: against the buffers that are live at the block's start, and
against each other. ``tests/plan/pairs.py`` compares all pairs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isqrt

import numpy as np
import numpy.typing as npt

from tvm_serenity.errors import CheckError
from tvm_serenity.graph.arrays import Ints
from tvm_serenity.plan.buffers import MAX_BYTES, Buffer, Region
from tvm_serenity.plan.columns import BufferColumns, constrained

LEAST_BLOCK, MOST_BLOCK = 128, 512
"""Limits on the number of buffers per block: the square root of the last block's live buffers."""

NONE = np.zeros(0, dtype=np.int64)


def check_plan(
    buffers: Sequence[Buffer], offsets: Sequence[int], capacity: int | None = None
) -> None:
    """Raise :class:`CheckError`, which names the buffers and their bytes, if a plan is invalid."""
    if len(buffers) != len(offsets):
        raise CheckError(f"the plan has {len(offsets)} offsets for {len(buffers)} buffers")
    columns = BufferColumns.of(buffers)
    start = _checked_offsets(buffers, columns, offsets)
    placed = _Placed(columns.lower, columns.upper, start, start + columns.size_bytes)
    taking = np.flatnonzero((columns.size_bytes > 0) & (columns.lower < columns.upper))
    for index in () if capacity is None else taking[placed.end[taking] > capacity][:1].tolist():
        raise CheckError(
            f"buffer {columns.name[index]!r} ends at byte {placed.end[index]}, past the capacity "
            f"of {capacity} bytes"
        )
    for one, two in _meeting(placed, taking, _sharing(buffers)):
        _check_pair(buffers[one], offsets[one], buffers[two], offsets[two])


def check_regions(
    buffers: Sequence[Buffer],
    offsets: Sequence[int],
    placed_in: Sequence[str],
    regions: Sequence[Region],
) -> None:
    """Raise :class:`CheckError` if a buffer is in a wrong region, or a region's plan is invalid.

    ``placed_in``: the name of each buffer's region.
    """
    if len(buffers) != len(placed_in) or len(buffers) != len(offsets):
        raise CheckError(
            f"the plan has {len(buffers)} buffers, {len(offsets)} offsets and {len(placed_in)} "
            "regions; the numbers must be equal"
        )
    for buffer, name in zip(buffers, placed_in, strict=True):
        if name not in (buffer.regions or [region.name for region in regions]):
            raise CheckError(
                f"buffer {buffer.name!r} is placed in region {name!r}, which it does not allow"
            )
    for region in regions:
        inside = [i for i, name in enumerate(placed_in) if name == region.name]
        check_plan(
            [buffers[i] for i in inside], [offsets[i] for i in inside], region.capacity_bytes
        )


@dataclass(frozen=True, slots=True)
class _Placed:
    """The live range of each buffer in steps, and its range of bytes in the arena; half open."""

    lower: Ints
    upper: Ints
    start: Ints
    end: Ints


def _meeting(placed: _Placed, taking: Ints, sharing: set[int]) -> Iterator[tuple[int, int]]:
    """Yield all pairs of buffers that are live at the same step and share bytes.

    ``sharing``: the buffers that may overlap others.
    """
    waiting = taking[np.argsort(placed.lower[taking], kind="stable")]
    may_share = np.zeros(len(placed.lower), dtype=np.bool_)
    may_share[list(sharing)] = True
    # Live buffers that may not overlap any other, ascending by address; and the other live buffers.
    alone = shared = NONE
    first = 0
    while first < len(waiting):
        width = min(max(LEAST_BLOCK, isqrt(len(alone))), MOST_BLOCK)
        block = waiting[first : first + width]
        first += width
        now = placed.lower[block[0]]
        alone, shared = (live[placed.upper[live] > now] for live in (alone, shared))
        yield from _listed(_beside(placed, alone, block))
        yield from _listed(_all(placed, shared, block))
        yield from _listed(_within(placed, block))
        joining = block[~may_share[block]]
        joining = joining[np.argsort(placed.start[joining], kind="stable")]
        at = np.searchsorted(placed.start[alone], placed.start[joining])
        alone = np.insert(alone, at, joining)
        shared = np.concatenate([shared, block[may_share[block]]])


def _listed(pairs: tuple[Ints, Ints]) -> Iterator[tuple[int, int]]:
    return zip(*(side.tolist() for side in pairs), strict=True)


def _beside(placed: _Placed, live: Ints, block: Ints) -> tuple[Ints, Ints]:
    """Return pairs of a live buffer and a buffer of the block that share bytes.

    The buffers ``live`` are disjoint and sorted by address.
    """
    below = np.searchsorted(placed.end[live], placed.start[block], side="right")
    above = np.searchsorted(placed.start[live], placed.end[block], side="left")
    count = above - below
    first = np.repeat(np.cumsum(count) - count - below, count)
    one, two = live[np.arange(len(first)) - first], np.repeat(block, count)
    met = placed.upper[one] > placed.lower[two]
    return one[met], two[met]


def _all(placed: _Placed, live: Ints, block: Ints) -> tuple[Ints, Ints]:
    """Return pairs of a live buffer and a buffer of the block that share bytes.

    The buffers ``live`` may overlap each other.
    """
    met = _met(placed, live[:, None], block)
    i, j = np.nonzero(met) if met.any() else (NONE, NONE)
    return live[i], block[j]


def _within(placed: _Placed, block: Ints) -> tuple[Ints, Ints]:
    """Return pairs of buffers of the block that share bytes; the one that begins first is first."""
    place = np.arange(len(block))
    met = _met(placed, block[:, None], block) & (place[:, None] < place)
    i, j = np.nonzero(met) if met.any() else (NONE, NONE)
    return block[i], block[j]


def _met(placed: _Placed, one: Ints, two: Ints) -> npt.NDArray[np.bool_]:
    """Return whether each buffer ``one`` is live when ``two`` begins, and shares bytes with it."""
    below = placed.start[one] < placed.end[two]
    return below & (placed.start[two] < placed.end[one]) & (placed.upper[one] > placed.lower[two])


def _sharing(buffers: Sequence[Buffer]) -> set[int]:
    """Return the buffers that may overlap another buffer, or that another may overlap."""
    asked = constrained(buffers)
    named = {buffer.may_overlap for buffer in asked} - {None}
    return {i for i, b in enumerate(asked) if b.may_overlap is not None or b.name in named}


def _checked_offsets(
    buffers: Sequence[Buffer], columns: BufferColumns, offsets: Sequence[int]
) -> Ints:
    """Return the offsets as an array, checked: not negative, aligned, equal to fixed ones."""
    if min(offsets, default=0) < 0 or max(offsets, default=0) > MAX_BYTES:
        index = next(i for i, offset in enumerate(offsets) if not 0 <= offset <= MAX_BYTES)
        raise CheckError(
            f"buffer {columns.name[index]!r}: its offset {offsets[index]} is not in 0..{MAX_BYTES}"
        )
    start = np.fromiter(offsets, dtype=np.int64, count=len(offsets))
    for index in np.flatnonzero(start % columns.alignment)[:1].tolist():
        raise CheckError(
            f"buffer {columns.name[index]!r}: its offset {offsets[index]} is not a multiple of its "
            f"alignment {columns.alignment[index]}"
        )
    for buffer, offset in zip(constrained(buffers), offsets, strict=False):
        if buffer.offset is not None and buffer.offset != offset:
            raise CheckError(
                f"buffer {buffer.name!r} is placed at offset {offset}, but its fixed offset is "
                f"{buffer.offset}"
            )
    return start


def _check_pair(one: Buffer, at: int, two: Buffer, there: int) -> None:
    if at + one.size_bytes <= there or there + two.size_bytes <= at:
        return
    for first, second in ((one, two), (two, one)):
        if first.may_overlap != second.name:
            continue
        start, other = (at, there) if first is one else (there, at)
        if first.overlap == "below" and start + first.distance_bytes <= other:
            return
        if first.overlap == "any" or (first.overlap == "start" and start == other):
            return
    raise CheckError(
        f"buffers {one.name!r} and {two.name!r} are both live at step "
        f"{max(one.lower, two.lower)} and share bytes: {at}..{at + one.size_bytes} and "
        f"{there}..{there + two.size_bytes}"
    )
