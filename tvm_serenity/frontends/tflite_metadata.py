"""Named metadata of a ``.tflite`` file: read, and written without moving other data.

Offsets in a flatbuffer point forward only, so that new data goes in front of the file: a root
table, the vectors of buffers and of metadata with one more entry each, the entry and its bytes. The
unchanged old file follows at a multiple of 64 bytes, which preserves alignments and offsets. Its
header, its root table and the two vectors are then unused.
"""

import struct
from collections.abc import Sequence

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.frontends._flatbuffer import Table, root_table
from tvm_serenity.frontends._tflite_schema import (
    BufferField,
    MetadataField,
    ModelField,
    OperatorField,
    SubgraphField,
    TensorField,
)

IDENTIFIER = b"TFL3"
_ALIGNMENT = 64
_DATA_ALIGNMENT = 16  # the schema's force_align of a buffer's bytes
_KNOWN_FIELDS = 10


def read_metadata(data: bytes, name: str) -> bytes | None:
    """Return the bytes of the metadata ``name``, None if there is none.

    Raises :class:`InputError` if the file is truncated or corrupt.
    """
    model = root_table(data, IDENTIFIER)
    entry = _entry(model, name)
    if entry is None:
        return None
    start, size = _buffer_span(model, entry.u32(MetadataField.BUFFER))
    return data[start : start + size]


def planned_offsets(data: bytes, name: str) -> dict[int, int]:
    """Return tensor offsets from a TFLM plan in the metadata ``name``; -1: not planned.

    Three numbers precede them: a version, a count of subgraphs, and the number of tensors.
    """
    held = read_metadata(data, name) or b""
    count = len(held) // 4
    return dict(enumerate(struct.unpack_from(f"<{count}i", held)[3:]))


def write_metadata(data: bytes, name: str, content: bytes) -> bytes:
    """Return the file with the metadata ``name`` set to ``content`` and no other change.

    An existing entry of the same size is overwritten, any other is replaced. Raises
    :class:`UnsupportedError` if the file stores data after its flatbuffer.
    """
    model = root_table(data, IDENTIFIER)
    _refuse_data_behind(model)
    entry = _entry(model, name)
    if entry is not None:
        index = entry.u32(MetadataField.BUFFER)
        start, size = _buffer_span(model, index)
        if size == len(content) and _referred(model, index) == 1:
            return data[:start] + content + data[start + size :]
    return _prefixed(data, model, entry, name, content)


def _entry(model: Table, name: str) -> Table | None:
    entries = model.tables(ModelField.METADATA)
    return next((e for e in entries if e.string(MetadataField.NAME) == name), None)


def _buffer_span(model: Table, index: int) -> tuple[int, int]:
    buffers = model.tables(ModelField.BUFFERS)
    if index >= len(buffers):
        raise UnsupportedError(f"metadata refers to buffer {index}, but there are {len(buffers)}")
    return buffers[index].span(BufferField.DATA, 1)


def _referred(model: Table, index: int) -> int:
    """Return the number of entries and tensors that refer to a buffer."""
    tensors = [
        tensor
        for subgraph in model.tables(ModelField.SUBGRAPHS)
        for tensor in subgraph.tables(SubgraphField.TENSORS)
    ]
    used = [t.u32(TensorField.BUFFER) for t in tensors]
    used += [e.u32(MetadataField.BUFFER) for e in model.tables(ModelField.METADATA)]
    return used.count(index)


def _refuse_data_behind(model: Table) -> None:
    """Refuse data at absolute file positions, which models of more than 2 GB use."""
    behind = any(b.u64(BufferField.OFFSET) > 1 for b in model.tables(ModelField.BUFFERS))
    for subgraph in model.tables(ModelField.SUBGRAPHS):
        for op in subgraph.tables(SubgraphField.OPERATORS):
            behind = behind or op.u64(OperatorField.LARGE_CUSTOM_OPTIONS_OFFSET) > 1
    if behind:
        raise UnsupportedError(
            "the file stores data after the flatbuffer, so no metadata can be added"
        )


def _prefixed(data: bytes, model: Table, old: Table | None, name: str, content: bytes) -> bytes:
    buffers = [t.position for t in model.tables(ModelField.BUFFERS)]
    entries = [
        t.position
        for t in model.tables(ModelField.METADATA)
        if old is None or t.position != old.position
    ]
    front = _Front()
    table = front.table(model)
    buffer_vector = front.vector(len(buffers) + 1)
    entry_vector = front.vector(len(entries) + 1)
    entry, label = front.entry(buffer=len(buffers))
    front.point(label, front.bytes(name.encode() + b"\0", length=len(name.encode())))
    new_buffer, slot = front.buffer()
    front.point(slot, front.bytes(content, align=_DATA_ALIGNMENT))
    shift = front.close()

    front.point(0, table.position)
    for number, target in table.targets.items():
        front.point(table.slots[number], shift + target)
    front.point(table.slots[ModelField.BUFFERS], buffer_vector)
    front.point(table.slots[ModelField.METADATA], entry_vector)
    front.fill(buffer_vector, [*(shift + p for p in buffers), new_buffer])
    front.fill(entry_vector, [*(shift + p for p in entries), entry])
    return bytes(front.data) + data


class _Root:
    """The new root table: its position, its fields' positions, and their targets."""

    def __init__(self, position: int, slots: dict[int, int], targets: dict[int, int]) -> None:
        self.position, self.slots, self.targets = position, slots, targets


class _Front:
    """The bytes in front of the file; positions count from its first byte."""

    def __init__(self) -> None:
        self.data = bytearray(b"\0\0\0\0" + IDENTIFIER)

    def _align(self, width: int, ahead: int = 0) -> int:
        self.data += bytes(-(len(self.data) + ahead) % width)
        return len(self.data)

    def table(self, model: Table) -> _Root:
        """Write the root table with the fields of ``model``, buffers and metadata included."""
        fields = max(model.field_count, ModelField.METADATA + 1)
        if fields > _KNOWN_FIELDS:
            raise UnsupportedError("the model uses a newer schema version than is supported")
        targets = {n: model.target(n) for n in range(1, fields) if model.target(n)}
        present = {0, ModelField.BUFFERS, ModelField.METADATA, *targets}
        vtable = self._align(4)
        inside = [4 * (n + 1) if n in present else 0 for n in range(fields)]
        self.data += struct.pack(f"<{fields + 2}H", 4 + 2 * fields, 4 * (fields + 1), *inside)
        position = self._align(4)
        self.data += struct.pack("<iI", position - vtable, model.u32(ModelField.VERSION))
        self.data += bytes(4 * (fields - 1))
        slots = {n: position + 4 * (n + 1) for n in range(fields)}
        return _Root(position, slots, targets)

    def vector(self, count: int) -> int:
        """Reserve a vector of ``count`` offsets."""
        position = self._align(4)
        self.data += struct.pack("<I", count) + bytes(4 * count)
        return position

    def entry(self, buffer: int) -> tuple[int, int]:
        """Write a metadata entry; return its position and that of its name's offset."""
        vtable = self._align(4)
        self.data += struct.pack("<4H", 8, 12, 4, 8)
        position = self._align(4)
        self.data += struct.pack("<iII", position - vtable, 0, buffer)
        return position, position + 4

    def buffer(self) -> tuple[int, int]:
        """Write a buffer; return its position and that of its bytes' offset."""
        vtable = self._align(4)
        self.data += struct.pack("<3H", 6, 8, 4)
        position = self._align(4)
        self.data += struct.pack("<iI", position - vtable, 0)
        return position, position + 4

    def bytes(self, content: bytes, align: int = 4, length: int | None = None) -> int:
        """Write a vector of bytes with its first byte aligned; ``length``: its full length."""
        position = self._align(align, ahead=4)
        self.data += struct.pack("<I", len(content) if length is None else length) + content
        return position

    def close(self) -> int:
        """Pad to the start of the old file, and return that position."""
        return self._align(_ALIGNMENT)

    def point(self, slot: int, target: int) -> None:
        """Set the offset at ``slot`` to ``target``."""
        if target - slot >= 2**32:
            raise UnsupportedError("no room for another buffer: offsets in the file have 32 bits")
        struct.pack_into("<I", self.data, slot, target - slot)

    def fill(self, vector: int, targets: Sequence[int]) -> None:
        """Set the offsets of a vector to ``targets``."""
        for i, target in enumerate(targets):
            self.point(vector + 4 * (i + 1), target)
