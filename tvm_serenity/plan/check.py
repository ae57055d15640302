"""An independent check of placements: in order of time, each buffer beside those that are live.

It shares nothing with the planners but the :class:`Buffer` it is given. As long as no two share
bytes, what is live lies apart, so of all that do not ask to share only the neighbours of a new
buffer can reach into it: O(n log n) comparisons. ``tests/plan/pairs.py`` compares all pairs.
"""

from bisect import bisect_left, insort
from collections.abc import Sequence
from heapq import heappop, heappush

from tvm_serenity.errors import CheckError
from tvm_serenity.plan.buffers import Buffer, Region


def check_plan(
    buffers: Sequence[Buffer], offsets: Sequence[int], capacity: int | None = None
) -> None:
    """Raises :class:`CheckError` at the first violation, naming the buffers and their bytes."""
    if len(buffers) != len(offsets):
        raise CheckError(f"{len(buffers)} buffers have {len(offsets)} offsets")
    for buffer, offset in zip(buffers, offsets, strict=True):
        _check_alone(buffer, offset, capacity)
    named = {buffer.may_overlap for buffer in buffers} - {None}
    taking = [(b.lower, i) for i, b in enumerate(buffers) if b.size_bytes > 0 and b.lower < b.upper]
    apart: list[tuple[int, int]] = []  # offsets and indices of what is live and lies alone
    shared: list[int] = []  # what is live and may share bytes, or is asked to
    ends: list[tuple[int, int]] = []
    for lower, index in sorted(taking):
        while ends and ends[0][0] <= lower:
            gone = heappop(ends)[1]
            apart.pop(bisect_left(apart, (offsets[gone], gone)))
        shared = [other for other in shared if buffers[other].upper > lower]
        buffer, offset = buffers[index], offsets[index]
        after = bisect_left(apart, (offset, -1))
        for at, other in apart[max(0, after - 1) : after + 1]:
            _check_pair(buffers[other], at, buffer, offset)
        for other in shared:
            _check_pair(buffers[other], offsets[other], buffer, offset)
        if buffer.may_overlap is not None or buffer.name in named:
            shared.append(index)
        else:
            insort(apart, (offset, index))
            heappush(ends, (buffer.upper, index))


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


def _check_alone(buffer: Buffer, offset: int, capacity: int | None) -> None:
    if offset < 0:
        raise CheckError(f"buffer {buffer.name!r}: negative offset {offset}")
    if offset % buffer.alignment != 0:
        raise CheckError(f"buffer {buffer.name!r}: offset {offset} is not {buffer.alignment}-fold")
    if buffer.offset is not None and buffer.offset != offset:
        raise CheckError(f"buffer {buffer.name!r}: at {offset}, but fixed at {buffer.offset}")
    takes = buffer.size_bytes > 0 and buffer.upper > buffer.lower
    if capacity is not None and takes and offset + buffer.size_bytes > capacity:
        raise CheckError(
            f"buffer {buffer.name!r}: ends at {offset + buffer.size_bytes}, past the capacity "
            f"of {capacity} bytes"
        )


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
