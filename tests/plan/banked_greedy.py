"""Greedy placement over banks of memory, as ExecuTorch's planners with a hierarchy describe it.

Written from the description, as a rival to compare with: buffers in order of size, the largest
first; each goes into the first bank where it ends within the capacity, at the smallest gap between
the buffers of that bank that are live at the same time, or above them; else the next bank is asked.
"""

from collections.abc import Sequence

from tvm_serenity.plan import Buffer, Region


def banked_greedy(
    buffers: Sequence[Buffer], banks: Sequence[Region]
) -> tuple[tuple[int, int], ...]:
    """The number of the bank and the offset of each buffer, in the order of the buffers.

    Banks are listed with the fastest first. Raises ValueError if a buffer fits into no bank.
    """
    found: dict[int, tuple[int, int]] = {}
    placed: list[list[tuple[int, int, Buffer]]] = [[] for _ in banks]  # offset, end, buffer
    for index in sorted(range(len(buffers)), key=lambda i: -buffers[i].size_bytes):
        one = buffers[index]
        size = -(-one.size_bytes // one.alignment) * one.alignment
        for bank, region in enumerate(banks):
            offset = _offset(one, size, sorted(placed[bank], key=lambda item: item[:2]))
            if region.capacity_bytes is None or offset + size <= region.capacity_bytes:
                found[index] = bank, offset
                placed[bank].append((offset, offset + size, one))
                break
        else:
            raise ValueError(f"buffer {one.name!r} of {size:,} bytes fits into no bank")
    return tuple(found[index] for index in range(len(buffers)))


def _offset(one: Buffer, size: int, placed: Sequence[tuple[int, int, Buffer]]) -> int:
    """The start of the smallest gap of ``size`` bytes, or what is above all buffers."""
    gaps, top = [], 0
    for start, end, other in placed:
        if one.lower < other.upper and other.lower < one.upper:
            if start - top >= size:
                gaps.append((start - top, top))
            top = max(top, end)
    return min(gaps)[1] if gaps else top
