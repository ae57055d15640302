"""Buffers to place, with a size, a lifetime and constraints on their offset.

A buffer is live at the steps ``lower <= t < upper``. Two buffers that are live at a common step
must not share a byte, unless one names the other in ``may_overlap``. A buffer of size zero or with
an empty lifetime is legal and costs nothing: it never conflicts and never raises the arena.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from tvm_serenity.errors import InputError

MAX_BYTES = 2**62 - 1
"""The limit on offsets, steps and alignments, and on the sum of all sizes with padding."""


class Overlap(StrEnum):
    """The kind of overlap that two buffers may have while both are live."""

    START = "start"  # The same offset, for an in-place elementwise operator; or no overlap.
    ANY = "any"  # Any overlap: neither buffer is read after the other is written.
    # This buffer may start some bytes below the other: rows are written after they were read.
    BELOW = "below"


@dataclass(frozen=True, slots=True)
class Buffer:
    """A block of memory that is live at the steps ``lower`` to ``upper - 1``.

    ``offset``: a fixed offset; None: the planner chooses it. ``may_overlap``: the name of one other
    buffer that may share bytes with this one, as ``overlap`` says; the permission is mutual. With
    ``Overlap.BELOW``, this buffer may start ``distance_bytes`` or more below the start of the other
    one. ``regions``: the names of the regions that may hold the buffer, best first; an empty tuple
    means all regions, in the order of the options. Raises :class:`InputError` if a field is out of
    range or fields contradict each other.
    """

    name: str
    lower: int
    upper: int
    size_bytes: int
    alignment: int = 1
    offset: int | None = None
    may_overlap: str | None = None
    overlap: Overlap = Overlap.START
    regions: tuple[str, ...] = ()
    distance_bytes: int = 0

    def __post_init__(self) -> None:
        free = self.offset is None and self.may_overlap is None and not self.regions
        bounded = 0 <= self.size_bytes <= MAX_BYTES and 1 <= self.alignment <= MAX_BYTES
        if not (free and bounded and -MAX_BYTES <= self.lower <= self.upper <= MAX_BYTES):
            self._check()

    def _check(self) -> None:
        def refuse(reason: str) -> InputError:
            return InputError(f"buffer {self.name!r}: {reason}")

        if self.size_bytes < 0:
            raise refuse(f"its size is {self.size_bytes} bytes; it must not be negative")
        if self.lower > self.upper:
            raise refuse(f"its lifetime starts at step {self.lower}, after its end {self.upper}")
        if max(abs(self.lower), abs(self.upper)) > MAX_BYTES:
            raise refuse(f"its lifetime {self.lower}..{self.upper} is outside +-{MAX_BYTES}")
        if not 1 <= self.alignment <= MAX_BYTES:
            raise refuse(f"its alignment {self.alignment} is not in 1..{MAX_BYTES}")
        if self.size_bytes > MAX_BYTES:
            raise refuse(f"its size {self.size_bytes} exceeds {MAX_BYTES} bytes")
        if self.offset is not None:
            if not 0 <= self.offset <= MAX_BYTES - self.size_bytes:
                raise refuse(
                    f"its fixed offset {self.offset} is not in 0..{MAX_BYTES} minus the size"
                )
            if self.offset % self.alignment:
                raise refuse(
                    f"its fixed offset {self.offset} is not a multiple of its alignment "
                    f"{self.alignment}"
                )
        if self.may_overlap == self.name:
            raise refuse("may_overlap names the buffer itself; name another buffer")
        below = self.may_overlap is not None and self.overlap is Overlap.BELOW
        if below and not 1 <= self.distance_bytes <= MAX_BYTES:
            raise refuse(f"its distance {self.distance_bytes} is not in 1..{MAX_BYTES}")
        if len(set(self.regions)) != len(self.regions):
            raise refuse("its regions list a region twice; list each region once")

    @property
    def costs(self) -> bool:
        """Whether the buffer takes memory at some step."""
        return self.size_bytes > 0 and self.lower < self.upper


@dataclass(frozen=True, slots=True)
class Region:
    """A memory region of ``capacity_bytes`` (None: no limit)."""

    name: str
    capacity_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.capacity_bytes is not None and self.capacity_bytes < 0:
            raise InputError(
                f"region {self.name!r}: its capacity is {self.capacity_bytes} bytes; it must not "
                "be negative"
            )


def check_buffers(buffers: Sequence[Buffer], alignment: int = 1) -> None:
    """Raise :class:`InputError` if buffers contradict each other; the message names them."""
    known, total = set[str](), 0
    for buffer in buffers:
        if buffer.name in known:
            raise InputError(f"buffer {buffer.name!r}: two buffers have this name; rename one")
        known.add(buffer.name)
        total += buffer.size_bytes + max(buffer.alignment, alignment)
        if buffer.offset is not None:
            total = max(total, buffer.offset + total)
            if buffer.offset % alignment:
                raise InputError(
                    f"buffer {buffer.name!r}: its fixed offset {buffer.offset} is not a multiple "
                    f"of the minimum alignment {alignment}"
                )
        if total > MAX_BYTES:
            raise InputError(
                f"buffer {buffer.name!r}: sizes, padding and fixed offsets up to it exceed "
                f"{MAX_BYTES} bytes"
            )
    for buffer in buffers:
        if buffer.may_overlap is not None and buffer.may_overlap not in known:
            raise InputError(
                f"buffer {buffer.name!r}: may_overlap names {buffer.may_overlap!r}, which is not a "
                "buffer"
            )
