"""Tables put before the bytes of a flatbuffer that refer to it, so that the file itself is kept.

Offsets of a flatbuffer count forward from where they stand and mean the same wherever the whole
lies: new tables in front of an old file may refer to any part of it.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

_ALIGNMENT = 16


@dataclass(frozen=True, slots=True)
class Kept:
    """A position in the bytes of the old file."""

    position: int


Target = int | Kept | None
"""What an offset refers to: a position in the prefix, one of the old file, or nothing."""


@dataclass
class Prefix:
    """The new bytes, and the offsets in them that are set when all is written."""

    data: bytearray = field(default_factory=bytearray)
    offsets: list[tuple[int, Target]] = field(default_factory=list)

    def align(self, alignment: int, ahead: int = 0) -> int:
        """Return where ``ahead`` bytes can be written that end at a multiple of ``alignment``."""
        self.data.extend(bytes(-(len(self.data) + ahead) % alignment))
        return len(self.data)

    def refer(self, place: int, target: Target) -> None:
        """Set the offset at ``place``; it counts forward."""
        self.offsets.append((place, target))

    def table(self, offsets: Sequence[int], words: dict[int, int], small: dict[int, int]) -> int:
        """Write a table of offset fields, 32-bit fields and bytes; return its position.

        The fields are numbered as in the schema; :meth:`place` finds one that is to be set.
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
        """Return where a field of a table of this prefix stands."""
        vtable = table - struct.unpack_from("<i", self.data, table)[0]
        return table + int(struct.unpack_from("<H", self.data, vtable + 4 + 2 * number)[0])

    def ints(self, values: Sequence[int]) -> int:
        """Write a vector of 32-bit numbers; return its position."""
        start = self.align(4)
        self.data += struct.pack(f"<I{len(values)}i", len(values), *values)
        return start

    def packed(self, values: bytes) -> int:
        """Write a vector of bytes, aligned for any element, and a 0 after it."""
        start = self.align(_ALIGNMENT, 4)
        self.data += struct.pack("<I", len(values)) + values + b"\0"
        return start

    def vector(self, count: int) -> int:
        """Write a vector of ``count`` offsets that are to be set; return its position."""
        start = self.align(4)
        self.data += struct.pack("<I", count) + bytes(4 * count)
        return start

    def before(self, old: bytes) -> bytes:
        """Return the whole file: the prefix and the old bytes behind it."""
        shift = self.align(_ALIGNMENT)
        for place, target in self.offsets:
            if target is not None:
                to = target.position + shift if isinstance(target, Kept) else target
                struct.pack_into("<I", self.data, place, to - place)
        return bytes(self.data) + old
