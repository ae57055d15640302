"""The tensors of an ExecuTorch method, and their overlaps in planned memory."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tvm_serenity.errors import InputError, UnsupportedError
from tvm_serenity.frontends._flatbuffer import Table
from tvm_serenity.frontends._pte_schema import (
    EXTERNAL,
    SCALAR_TYPES,
    UNBOUND,
    AllocationField,
    ExtraField,
    ListField,
    StoredField,
    UnionField,
    ValueKind,
)
from tvm_serenity.frontends.model_file import size_bytes

_LISTS = (ValueKind.TENSOR_LIST, ValueKind.OPTIONAL_TENSOR_LIST)


@dataclass(frozen=True)
class Held:
    """A tensor of the file; ``name``: "" if unnamed, ``memory``: 0 if it has no place."""

    index: int
    name: str
    shape: tuple[int, ...]
    dtype: str
    size_bytes: int
    has_data: bool
    memory: int
    offset: int


def read_values(tables: tuple[Table, ...]) -> list[Held | tuple[int, ...] | None]:
    """Return each value: a tensor, the indices of a list's tensors, or None.

    Raises :class:`UnsupportedError` for a tensor whose size is known only at run time.
    """
    return [_value(index, table) for index, table in enumerate(tables)]


def _value(index: int, value: Table) -> Held | tuple[int, ...] | None:
    kind, table = value.u8(UnionField.TYPE), value.table(UnionField.TABLE)
    if table is not None and kind in _LISTS:
        return tuple(item for item in table.ints(ListField.ITEMS) if item != -1)
    return _tensor(index, table) if table is not None and kind == ValueKind.TENSOR else None


def _tensor(index: int, table: Table) -> Held:
    extra = table.table(StoredField.EXTRA_TENSOR_INFO)
    called = extra.string(ExtraField.NAME) if extra is not None else ""
    name = called or f"value_{index}"
    outside = extra is not None and extra.u8(ExtraField.LOCATION) == EXTERNAL
    has_data = table.u32(StoredField.DATA_BUFFER_IDX) > 0 or outside
    shape = table.ints(StoredField.SIZES)
    if table.u8(StoredField.SHAPE_DYNAMISM) == UNBOUND:
        raise UnsupportedError(f"tensor {name!r}: its size is known only at run time")
    code = table.u8(StoredField.SCALAR_TYPE)
    if code not in SCALAR_TYPES:
        raise UnsupportedError(f"tensor {name!r}: unknown scalar type {code}")
    dtype, bits = SCALAR_TYPES[code]
    size = size_bytes(name, shape, bits)
    memory, offset = _place(name, table.table(StoredField.ALLOCATION_INFO))
    return Held(index, called, shape, dtype, size, has_data, memory, offset)


def _place(name: str, info: Table | None) -> tuple[int, int]:
    if info is None:
        return 0, 0
    memory = info.u32(AllocationField.MEMORY_ID)
    if memory == 0:
        raise InputError(f"tensor {name!r}: is placed in memory 0, which is for constants")
    high, low = info.u32(AllocationField.OFFSET_HIGH), info.u32(AllocationField.OFFSET_LOW)
    return memory, (high << 32) + low


def check_places(values: list[Held | tuple[int, ...] | None], sizes: Mapping[int, int]) -> None:
    """Raise :class:`InputError` for a tensor beyond the end of its memory of ``sizes`` bytes."""
    for value in values:
        if isinstance(value, Held) and value.memory:
            end = value.offset + value.size_bytes
            if end > sizes.get(value.memory, 0):
                raise InputError(
                    f"value {value.index} ends at byte {end} of memory {value.memory}, "
                    f"which has only {sizes.get(value.memory, 0)} bytes"
                )


@dataclass
class LastWritten:
    """The tensor written last at each byte of the memories."""

    _held: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)
    """The disjoint parts of each memory in ascending order: first byte, end, and tensor."""

    def write(self, stored: Held, tensor: int) -> None:
        """Record that ``tensor`` now holds the bytes of ``stored``."""
        if not stored.memory or not stored.size_bytes:
            return
        first, end = stored.offset, stored.offset + stored.size_bytes
        kept = list(self._without(stored.memory, first, end))
        self._held[stored.memory] = sorted([*kept, (first, end, tensor)])

    def shown(self, stored: Held) -> tuple[tuple[int, ...], bool]:
        """Return the tensors that hold bytes of ``stored``, and whether they cover all of them."""
        first, end = stored.offset, stored.offset + stored.size_bytes
        parts = [
            (max(start, first), min(stop, end), tensor)
            for start, stop, tensor in self._held.get(stored.memory, ())
            if start < end and first < stop
        ]
        held = sum(stop - start for start, stop, _ in parts)
        return tuple(dict.fromkeys(t for _, _, t in parts)), held == stored.size_bytes

    def _without(self, memory: int, first: int, end: int) -> Iterator[tuple[int, int, int]]:
        for start, stop, tensor in self._held.get(memory, ()):
            if start < min(stop, first):
                yield start, min(stop, first), tensor
            if max(start, end) < stop:
                yield max(start, end), stop, tensor
