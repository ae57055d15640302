"""Known types, scales and small integers of a ``.tflite`` graph under construction."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tvm_serenity.frontends._flatbuffer import Table, empty_table
from tvm_serenity.frontends._tflite_loop_shapes import Reshaped
from tvm_serenity.frontends._tflite_schema import (
    TENSOR_TYPES,
    BufferField,
    TensorField,
)
from tvm_serenity.operators import operator
from tvm_serenity.operators.inferred import values_of
from tvm_serenity.operators.scene import Array

_MOST_ELEMENTS = 64
_QUANTIZATION_SCALES, _QUANTIZATION_ZEROS = 2, 3
_KNOWN = {"int32": np.int32, "int64": np.int64, "bool": np.bool_}


class NotKnownError(Exception):
    """A loop or branch depends on a value that the file does not determine."""


@dataclass
class KnownTensors:
    """The tensors of the graph under construction; ``values``: the values known so far."""

    model: Table
    buffers: Sequence[Table]
    tensors: list[Table | Array | Reshaped] = field(default_factory=list)
    values: dict[int, Array] = field(default_factory=dict)
    made: set[int] = field(default_factory=set)
    """Tensors that operators or the caller write, whose stored bytes are not read."""

    def value(self, tensor: int) -> Array:
        """Return the integers or booleans of a tensor of the new graph, if they are known."""
        if tensor in self.values:
            return self.values[tensor]
        table = self.tensors[tensor] if tensor >= 0 else None
        if not isinstance(table, Table) or tensor in self.made:
            raise NotKnownError
        dtype = _type(table)
        quantised = table.table(TensorField.QUANTIZATION)
        if dtype not in _KNOWN or (quantised and quantised.span(_QUANTIZATION_SCALES, 4)[1]):
            raise NotKnownError
        buffer, shape = table.u32(TensorField.BUFFER), table.ints(TensorField.SHAPE)
        if buffer >= len(self.buffers) or table.u8(TensorField.IS_VARIABLE):
            raise NotKnownError
        start, size = self.buffers[buffer].span(BufferField.DATA, 1)
        count = math.prod(shape)
        if not 0 < count <= _MOST_ELEMENTS or size != count * np.dtype(_KNOWN[dtype]).itemsize:
            raise NotKnownError
        stored: Array = np.frombuffer(self.model.source.data, np.dtype(_KNOWN[dtype]), count, start)
        found: Array = stored.reshape(shape)
        self.values[tensor] = found
        return found

    def integers(self, tensor: int) -> Array | None:
        """Return the integers of a tensor, None if they are unknown."""
        try:
            return self.value(tensor).astype(np.int64)
        except NotKnownError:
            return None

    def form(self, tensor: int | Table) -> tuple[str, tuple[int, ...]]:
        """Return the numpy type name and the shape of a tensor."""
        if isinstance(tensor, int) and tensor < 0:
            raise NotKnownError
        found = self.tensors[tensor] if isinstance(tensor, int) else tensor
        if isinstance(found, Table):
            return _type(found), found.ints(TensorField.SHAPE)
        if isinstance(found, Reshaped):
            return _type(found.table), found.shape
        return found.dtype.name, found.shape

    def scales(self, tensor: int | Table) -> tuple[bytes, ...]:
        """Return the scales and zero points of a tensor, as stored."""
        found = self.tensors[tensor] if isinstance(tensor, int) else tensor
        table = found.table if isinstance(found, Reshaped) else found
        quantised = table.table(TensorField.QUANTIZATION) if isinstance(table, Table) else None
        if quantised is None:
            return ()
        fields = ((_QUANTIZATION_SCALES, 4), (_QUANTIZATION_ZEROS, 8))
        spans = [(quantised.span(number, size), size) for number, size in fields]
        data = self.model.source.data
        return tuple(bytes(data[start : start + n * size]) for (start, n), size in spans)

    def result(
        self, kind: str, options: Table | None, given: Sequence[int], made: Table
    ) -> Array | None:
        """Return an operator's result on known integers, in its type; None if it is unknown."""
        if _type(made) not in _KNOWN:
            return None
        try:
            values = [self.value(t) for t in given]
        except NotKnownError:
            return None
        found = values_of(operator(kind), values, options or empty_table())
        shape = made.ints(TensorField.SHAPE)
        if found is None or found.dtype != _KNOWN[_type(made)] or found.shape != shape:
            return None
        return found


def _type(table: Table) -> str:
    code = table.u8(TensorField.TYPE)
    if code >= len(TENSOR_TYPES):
        raise NotKnownError
    return TENSOR_TYPES[code][0]
