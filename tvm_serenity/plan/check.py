"""An independent check of placements: in order of time, each buffer beside those that are live.

It shares nothing with the planners but the buffers it is given. As long as no two share
bytes, what is live lies apart, so of all that do not ask to share only the neighbours of a new
buffer can reach into it: O(n log n) comparisons. ``tests/plan/pairs.py`` compares all pairs.
"""

from bisect import bisect_left
from collections.abc import Sequence

from tvm_serenity.errors import CheckError
from tvm_serenity.plan.buffers import Buffer, Region
from tvm_serenity.plan.columns import BufferColumns, constrained


def check_plan(
    buffers: Sequence[Buffer], offsets: Sequence[int], capacity: int | None = None
) -> None:
    """Raises :class:`CheckError` at the first violation, naming the buffers and their bytes."""
    if len(buffers) != len(offsets):
        raise CheckError(f"{len(buffers)} buffers have {len(offsets)} offsets")
    columns = BufferColumns.of(buffers)
    lower, upper, size = (c.tolist() for c in (columns.lower, columns.upper, columns.size_bytes))
    end = [offset + bytes_ for offset, bytes_ in zip(offsets, size, strict=True)]
    taking = [i for i, bytes_ in enumerate(size) if bytes_ > 0 and lower[i] < upper[i]]
    _check_each(buffers, columns, offsets)
    for index in () if capacity is None else taking:
        if end[index] > capacity:
            raise CheckError(
                f"buffer {columns.name[index]!r}: ends at {end[index]}, past the capacity of "
                f"{capacity} bytes"
            )
    sharing = _sharing(buffers)
    leaving = sorted((i for i in taking if i not in sharing), key=upper.__getitem__, reverse=True)
    starts: list[int] = []  # where what is live and lies alone starts, ascending
    owner: dict[int, int] = {}
    shared: list[int] = []  # what is live and may share bytes, or is asked to
    for index in sorted(taking, key=lower.__getitem__):
        offset, step = offsets[index], lower[index]
        while leaving and upper[leaving[-1]] <= step:
            start = offsets[leaving.pop()]
            del starts[bisect_left(starts, start)], owner[start]
        after = bisect_left(starts, offset)
        if after > 0 and end[below := owner[starts[after - 1]]] > offset:
            _check_pair(buffers[below], offsets[below], buffers[index], offset)
        if after < len(starts) and starts[after] < end[index]:
            above = owner[starts[after]]
            _check_pair(buffers[above], offsets[above], buffers[index], offset)
        if shared:
            shared = [other for other in shared if upper[other] > step]
            for other in shared:
                _check_pair(buffers[other], offsets[other], buffers[index], offset)
        if index in sharing:
            shared.append(index)
        else:
            starts.insert(after, offset)
            owner[offset] = index


def check_regions(
    buffers: Sequence[Buffer],
    offsets: Sequence[int],
    placed_in: Sequence[str],
    regions: Sequence[Region],
) -> None:
    """Raises :class:`CheckError` where a buffer is in a wrong region or a region is in conflict."""
    if len(buffers) != len(placed_in) or len(buffers) != len(offsets):
        raise CheckError(
            f"{len(buffers)} buffers, {len(offsets)} offsets, {len(placed_in)} regions"
        )
    for buffer, name in zip(buffers, placed_in, strict=True):
        if name not in (buffer.regions or [region.name for region in regions]):
            raise CheckError(f"buffer {buffer.name!r}: may not live in region {name!r}")
    for region in regions:
        inside = [i for i, name in enumerate(placed_in) if name == region.name]
        check_plan(
            [buffers[i] for i in inside], [offsets[i] for i in inside], region.capacity_bytes
        )


def _sharing(buffers: Sequence[Buffer]) -> set[int]:
    """The buffers that may share bytes with another one, or that another one may reach."""
    asked = constrained(buffers)
    named = {buffer.may_overlap for buffer in asked} - {None}
    return {i for i, b in enumerate(asked) if b.may_overlap is not None or b.name in named}


def _check_each(buffers: Sequence[Buffer], columns: BufferColumns, offsets: Sequence[int]) -> None:
    """Check that offsets are aligned, and where they are fixed."""
    for index, (offset, step) in enumerate(zip(offsets, columns.alignment.tolist(), strict=True)):
        if offset < 0:
            raise CheckError(f"buffer {columns.name[index]!r}: negative offset {offset}")
        if offset % step:
            raise CheckError(f"buffer {columns.name[index]!r}: offset {offset} is not {step}-fold")
    for buffer, offset in zip(constrained(buffers), offsets, strict=False):
        if buffer.offset is not None and buffer.offset != offset:
            raise CheckError(f"buffer {buffer.name!r}: at {offset}, but fixed at {buffer.offset}")


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
