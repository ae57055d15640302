"""A flatbuffer reader that checks each offset before it follows it.

The generated readers of the ``tflite`` package trust the file: an offset with a flipped bit points
anywhere. Here each access stays within the file or raises :class:`InputError`. The total number of
bytes read is bounded by a multiple of the file size, so that a vector stored once and referenced a
million times cannot exhaust memory. Layout: https://flatbuffers.dev/internals/
"""

import struct
from dataclasses import dataclass

from tvm_serenity.errors import InputError

_U8, _U16, _I32, _U32, _U64 = (struct.Struct(f"<{code}") for code in "BHiIQ")
_F32 = struct.Struct("<f")
_READS_PER_BYTE = 16
"""The bound of bytes read per byte of the file.

Valid files stay below 1; the margin allows shared strings and vectors.
"""


class FileBytes:
    """The bytes of a file, and the number of bytes that may still be read from it."""

    __slots__ = ("data", "left")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.left = _READS_PER_BYTE * len(data)

    def spend(self, count: int) -> None:
        """Subtract ``count`` bytes from the budget; raise :class:`InputError` if none is left."""
        self.left -= count
        if self.left < 0:
            raise InputError("the file refers to the same parts too often; it is corrupt")

    def check(self, start: int, size: int, what: str) -> None:
        """Raise unless ``size`` bytes from ``start`` are in the file."""
        if start < 0 or start + size > len(self.data):
            raise InputError(
                f"{what} at byte {start} needs {size} bytes, the file ends at "
                f"{len(self.data)}; it is truncated or corrupt"
            )

    def u32(self, position: int, what: str) -> int:
        """Return the unsigned 32-bit integer at ``position``."""
        self.check(position, 4, what)
        return int(_U32.unpack_from(self.data, position)[0])


@dataclass(frozen=True, slots=True)
class Table:
    """A flatbuffer table; fields have their number in the schema, from 0."""

    source: FileBytes
    position: int
    vtable: int
    vtable_size: int
    size: int

    def _field(self, number: int, width: int) -> int:
        """Return the position of a field, 0 if the file omits it."""
        slot = 4 + 2 * number
        if slot + 2 > self.vtable_size:
            return 0
        offset = int(_U16.unpack_from(self.source.data, self.vtable + slot)[0])
        if offset == 0:
            return 0
        if offset < 4 or offset + width > self.size:
            raise InputError(f"the table at byte {self.position} is corrupt (field {number})")
        return self.position + offset

    def _number(self, number: int, code: struct.Struct, default: int) -> int:
        position = self._field(number, code.size)
        return int(code.unpack_from(self.source.data, position)[0]) if position else default

    def u8(self, number: int, default: int = 0) -> int:
        """Return an unsigned byte, or a boolean."""
        return self._number(number, _U8, default)

    def i32(self, number: int, default: int = 0) -> int:
        """Return a signed 32-bit integer."""
        return self._number(number, _I32, default)

    def u32(self, number: int, default: int = 0) -> int:
        """Return an unsigned 32-bit integer."""
        return self._number(number, _U32, default)

    def u64(self, number: int, default: int = 0) -> int:
        """Return an unsigned 64-bit integer."""
        return self._number(number, _U64, default)

    def f32(self, number: int, default: float = 0.0) -> float:
        """Return a 32-bit float."""
        position = self._field(number, _F32.size)
        return float(_F32.unpack_from(self.source.data, position)[0]) if position else default

    @property
    def field_count(self) -> int:
        """The number of fields in the table's layout."""
        return (self.vtable_size - 4) // 2

    def target(self, number: int) -> int:
        """Return the position that an offset field points to, 0 if it is omitted."""
        position = self._field(number, 4)
        return position + self.source.u32(position, "an offset") if position else 0

    def table(self, number: int) -> "Table | None":
        """Return a table, None if it is omitted."""
        target = self.target(number)
        return table_at(self.source, target) if target else None

    def span(self, number: int, width: int) -> tuple[int, int]:
        """Return start and length of a vector of ``width``-byte elements; (0, 0) if omitted."""
        target = self.target(number)
        if not target:
            return 0, 0
        length = self.source.u32(target, "a vector")
        self.source.check(target + 4, length * width, "a vector")
        return target + 4, length

    def ints(self, number: int) -> tuple[int, ...]:
        """Return a vector of signed 32-bit integers."""
        start, length = self.span(number, 4)
        self.source.spend(4 * length)
        return struct.unpack_from(f"<{length}i", self.source.data, start)

    def longs(self, number: int) -> tuple[int, ...]:
        """Return a vector of signed 64-bit integers."""
        start, length = self.span(number, 8)
        self.source.spend(8 * length)
        return struct.unpack_from(f"<{length}q", self.source.data, start)

    def tables(self, number: int) -> tuple["Table", ...]:
        """Return a vector of tables."""
        start, length = self.span(number, 4)
        self.source.spend(4 * length)
        offsets = struct.unpack_from(f"<{length}I", self.source.data, start)
        return tuple(table_at(self.source, start + 4 * i + o) for i, o in enumerate(offsets))

    def string(self, number: int) -> str:
        """Return a string, empty if omitted; bytes that are not UTF-8 are replaced."""
        start, length = self.span(number, 1)
        self.source.spend(length)
        return self.source.data[start : start + length].decode("utf-8", errors="replace")


def empty_table() -> Table:
    """Return a table without fields: each field has its default."""
    return Table(FileBytes(b""), 0, 0, 4, 4)


def table_at(source: FileBytes, position: int) -> Table:
    """Return the table at ``position`` after checking its vtable and its extent."""
    source.check(position, 4, "a table")
    vtable = position - int(_I32.unpack_from(source.data, position)[0])
    source.check(vtable, 4, "a vtable")
    vtable_size, size = struct.unpack_from("<HH", source.data, vtable)
    if vtable_size < 4 or vtable_size % 2 or size < 4:
        raise InputError(f"the table at byte {position} is corrupt")
    source.check(vtable, vtable_size, "a vtable")
    source.check(position, size, "a table")
    return Table(source, position, vtable, vtable_size, size)


def root_table(data: bytes, identifier: bytes) -> Table:
    """Return the root of a flatbuffer whose bytes 4 to 8 are ``identifier``."""
    if data[4:8] != identifier:
        raise InputError(
            f"not a {identifier.decode()} flatbuffer: bytes 4 to 8 are {bytes(data[4:8])!r}"
        )
    source = FileBytes(data)
    return table_at(source, source.u32(0, "the root"))
