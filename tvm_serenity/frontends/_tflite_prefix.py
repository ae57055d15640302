"""New tables in front of a flatbuffer that refer to it, so that the old bytes are unchanged.

Offsets in a flatbuffer are relative and point forward: new tables in front of an old file may refer
to any part of it.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

_ALIGNMENT = 16


@dataclass(frozen=True, slots=True)
class Kept:
    """A position in the old file."""

    position: int


Target = int | Kept | None
"""The target of an offset: a position in the prefix, one in the old file, or nothing."""


@dataclass
class Prefix:
    """The bytes of the prefix, and the offsets that :meth:`before` sets."""

    data: bytearray = field(default_factory=bytearray)
    offsets: list[tuple[int, Target]] = field(default_factory=list)

    def align(self, alignment: int, ahead: int = 0) -> int:
        """Return a position from which ``ahead`` bytes end at a multiple of ``alignment``."""
        self.data.extend(bytes(-(len(self.data) + ahead) % alignment))
        return len(self.data)

    def refer(self, place: int, target: Target) -> None:
        """Set the offset at ``place`` to ``target``."""
        self.offsets.append((place, target))

    def table(self, offsets: Sequence[int], words: dict[int, int], small: dict[int, int]) -> int:
        """Write a FlatBuffers table and its vtable; return the table's position.

        ``offsets`` are the numbers of its offset fields; ``words`` and ``small`` are the values of
        its 32-bit and 8-bit fields, by number in the schema. :meth:`place` returns the position of
        a field.
        """
        fields = sorted((*offsets, *words, *small))
        count = max(fields, default=-1) + 1
        vtable = self.align(4)
        places = {number: 4 + 4 * i for i, number in enumerate(fields)}
        size = 4 + 4 * len(fields)
        slots = [places.get(number, 0) for number in range(count)]
        self.data += struct.pack(f"<{2 + count}H", 4 + 2 * count, size, *slots)
        start = self.align(4)
        self.data += struct.pack("<i", start - vtable) + bytes(4 * len(fields))
        for number, value in words.items():
            struct.pack_into("<I", self.data, start + places[number], value)
        for number, value in small.items():
            struct.pack_into("<B", self.data, start + places[number], value)
        return start

    def place(self, table: int, number: int) -> int:
        """Return the position of a field of a table in this prefix."""
        vtable = table - struct.unpack_from("<i", self.data, table)[0]
        return table + int(struct.unpack_from("<H", self.data, vtable + 4 + 2 * number)[0])

    def ints(self, values: Sequence[int]) -> int:
        """Write a vector of 32-bit integers; return its position."""
        start = self.align(4)
        self.data += struct.pack(f"<I{len(values)}i", len(values), *values)
        return start

    def packed(self, values: bytes) -> int:
        """Write a vector of bytes, aligned for any element, and a trailing 0."""
        start = self.align(_ALIGNMENT, 4)
        self.data += struct.pack("<I", len(values)) + values + b"\0"
        return start

    def vector(self, count: int) -> int:
        """Write a vector of ``count`` offsets to set later; return its position."""
        start = self.align(4)
        self.data += struct.pack("<I", count) + bytes(4 * count)
        return start

    def before(self, old: bytes) -> bytes:
        """Return the complete file: the prefix and the old bytes."""
        shift = self.align(_ALIGNMENT)
        for place, target in self.offsets:
            if target is not None:
                to = target.position + shift if isinstance(target, Kept) else target
                struct.pack_into("<I", self.data, place, to - place)
        return bytes(self.data) + old
