"""Capacities in text: sizes, ranges ``32K:1M:x2`` and ``64K:256K:+64K``, lists of both."""

from tvm_serenity.errors import InputError
from tvm_serenity.system.sizes import size_bytes

MAX_POINTS = 10_000


def capacities_of(text: str) -> tuple[int, ...]:
    """Return the distinct capacities that ``text`` lists, ascending.

    Parts are separated by commas: a size, or FIRST:LAST:xFACTOR or FIRST:LAST:+STEP.
    """
    sizes: set[int] = set()
    for part in text.split(","):
        sizes.update(_range(part) if ":" in part else [size_bytes(part, 1)])
    return tuple(sorted(sizes))


def _range(text: str) -> list[int]:
    parts = text.split(":")
    if len(parts) != 3 or parts[2].strip()[:1] not in ("x", "+"):
        raise InputError(
            f"capacities {text!r}: write a range as FIRST:LAST:xFACTOR or FIRST:LAST:+STEP"
        )
    first, last, step = size_bytes(parts[0], 1), size_bytes(parts[1], 1), parts[2].strip()
    if first > last:
        raise InputError(f"capacities {text!r}: the first size is larger than the last; swap them")
    by = size_bytes(step[1:], 1)
    if step[0] == "x" and by < 2:
        raise InputError(f"capacities {text!r}: the factor must be 2 or more")
    sizes, size = [], first
    while size <= last:
        sizes.append(size)
        size = size * by if step[0] == "x" else size + by
        if len(sizes) > MAX_POINTS:
            raise InputError(
                f"capacities {text!r}: more than {MAX_POINTS:,} points; use a larger step"
            )
    return sizes
