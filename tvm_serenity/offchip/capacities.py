"""Sizes in text: ``256``, ``32K``, ``1M``; ranges ``32K:1M:x2`` and ``64K:256K:+64K``; lists."""

import re

from tvm_serenity.errors import InputError

UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}
MAX_POINTS = 10_000
MAX_BYTES = 2**62


def size_of(text: str) -> int:
    """Return the bytes that ``text`` names; :class:`InputError` unless they are 1 or more."""
    match = re.fullmatch(r"(-?\d+)\s*([KMG]?)(i?B)?", text.strip(), re.IGNORECASE)
    if match is None:
        raise InputError(f"size {text!r}: write bytes, or a number with K, M or G (1024 each)")
    size = int(match[1]) * UNITS[match[2].upper()]
    if not 0 < size <= MAX_BYTES:
        raise InputError(f"size {text!r}: it must be 1 byte or more, up to {MAX_BYTES}")
    return size


def capacities_of(text: str) -> tuple[int, ...]:
    """Return the capacities that ``text`` lists, ascending, each once.

    Parts are separated by commas: a size, or FIRST:LAST:xFACTOR or FIRST:LAST:+STEP.
    """
    found: set[int] = set()
    for part in text.split(","):
        found.update(_range(part) if ":" in part else [size_of(part)])
    return tuple(sorted(found))


def _range(text: str) -> list[int]:
    parts = text.split(":")
    if len(parts) != 3 or parts[2].strip()[:1] not in ("x", "+"):
        raise InputError(f"capacities {text!r}: write FIRST:LAST:xFACTOR or FIRST:LAST:+STEP")
    first, last, step = size_of(parts[0]), size_of(parts[1]), parts[2].strip()
    if first > last:
        raise InputError(f"capacities {text!r}: the first is larger than the last")
    by = size_of(step[1:])
    if step[0] == "x" and by < 2:
        raise InputError(f"capacities {text!r}: a factor is 2 or more")
    found, size = [], first
    while size <= last:
        found.append(size)
        size = size * by if step[0] == "x" else size + by
        if len(found) > MAX_POINTS:
            raise InputError(f"capacities {text!r}: more than {MAX_POINTS:,} points")
    return found
