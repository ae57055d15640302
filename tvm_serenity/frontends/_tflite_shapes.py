"""Shapes of a ``.tflite`` file that depend on its batch, computed for the stored batch.

A network that was converted with an unknown batch stores 1 for each dependent extent, which is
wrong if such an extent exceeds the batch: a dense layer on a sequence reads ``[batch * steps,
channels]``. Computations on shapes (SHAPE, GATHER, PACK and others on plain integers) are
evaluated, a RESHAPE has the requested shape, and operators on changed tensors have inferred shapes.
The shapes are written into the file's bytes in place. An operator without a rule for its shape is
refused by name.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tvm_serenity.errors import InputError, UnsupportedError
from tvm_serenity.frontends._flatbuffer import Table, empty_table
from tvm_serenity.frontends._tflite_schema import (
    TENSOR_TYPES,
    BufferField,
    OperatorField,
    TensorField,
)
from tvm_serenity.operators import operator
from tvm_serenity.operators.extents import Extents
from tvm_serenity.operators.inferred import shape_of, values_of
from tvm_serenity.operators.scene import Array, Shape

_MOST = 64
"""The most elements of an evaluated vector of extents."""


def settled(
    data: bytes,
    tensors: Sequence[Table],
    operators: Sequence[tuple[str, Table]],
    buffers: Sequence[Table],
    given: Mapping[int, Shape],
) -> bytes:
    """Return ``data`` with the shapes of ``tensors`` for the stored batch.

    ``operators``: kinds and tables in file order. ``given``: input shapes other than the stored
    ones. A file without unknown extents is returned unchanged.
    """
    unknown = any(-1 in t.ints(TensorField.SHAPE_SIGNATURE) for t in tensors)
    if not unknown and not given:
        return data
    changed = {
        t: shape for t, shape in given.items() if shape != tensors[t].ints(TensorField.SHAPE)
    }
    following = _Following(data, tensors, buffers, changed, found=set(given))
    for kind, table in operators:
        following.step(kind, table)
    return following.patched()


@dataclass
class _Following:
    """Shapes and known values of tensors by number, updated operator by operator.

    ``changed``: shapes that differ from the stored ones. ``found``: tensors whose shape is certain.
    """

    data: bytes
    tensors: Sequence[Table]
    buffers: Sequence[Table]
    changed: dict[int, Shape] = field(default_factory=dict)
    known: dict[int, Array] = field(default_factory=dict)
    found: set[int] = field(default_factory=set)

    def shape(self, tensor: int) -> Shape:
        """Return the shape of a tensor."""
        if tensor in self.changed:
            return self.changed[tensor]
        return self.tensors[tensor].ints(TensorField.SHAPE)

    def value(self, tensor: int) -> Array | None:
        """Return the integers of a tensor, stored or computed; None for any other."""
        if tensor in self.known:
            return self.known[tensor]
        table = self.tensors[tensor]
        dtype = TENSOR_TYPES[table.u8(TensorField.TYPE)][0]
        start, size = self.buffers[table.u32(TensorField.BUFFER)].span(BufferField.DATA, 1)
        if dtype not in ("int32", "int64") or not size or size > 8 * _MOST:
            return None
        count = size // np.dtype(dtype).itemsize
        stored = np.frombuffer(self.data, dtype, count, start)
        return stored.reshape(self.shape(tensor)).astype(np.int64)

    def step(self, kind: str, table: Table) -> None:
        """Infer the shape, and the value if it is known, of an operator's result."""
        given, made = table.ints(OperatorField.INPUTS), table.ints(OperatorField.OUTPUTS)
        if not all(-1 <= t < len(self.tensors) for t in (*given, *made)):
            raise InputError(f"{kind} refers to a tensor that does not exist")
        if not given or not made or given[0] < 0:
            return
        options = table.table(OperatorField.BUILTIN_OPTIONS) or empty_table()
        if kind == "SHAPE":
            self.known[made[0]] = np.array(self.shape(given[0]), np.int64)
            return
        values = [None if t < 0 else self.value(t) for t in given]
        whole = [v for v in values if v is not None]
        found = values_of(operator(kind), whole, options) if len(whole) == len(values) else None
        if found is not None:
            self.known[made[0]] = found
            if made[0] not in self.changed and self.shape(made[0]) != found.shape:
                self.changed[made[0]] = found.shape
            return
        shape = self.shape_after(kind, given, made, options)
        if shape is not None:
            self.found.add(made[0])
            if shape != self.shape(made[0]):
                self.changed[made[0]] = shape

    def shape_after(
        self, kind: str, given: Sequence[int], made: Sequence[int], options: Table
    ) -> Shape | None:
        """Return the inferred shape of a result; None if it is the stored one, or unknown."""
        table = self.tensors[made[0]]
        follows = any(t in self.changed for t in given if t >= 0)
        unknown = -1 in table.ints(TensorField.SHAPE_SIGNATURE)[1:]
        if not follows and not unknown and not operator(kind).shapes.computed:
            return None
        shapes = [self.shape(t) if t >= 0 else () for t in given]
        values = [self.value(t) if t >= 0 else None for t in given]
        stored = table.ints(TensorField.SHAPE)
        shape = shape_of(operator(kind), Extents(shapes, values, options, stored))
        if shape is None and follows:
            name = table.string(TensorField.NAME)
            raise UnsupportedError(
                f"tensor {name!r}: unknown dimension in shape {list(stored)}, which "
                f"depends on the batch through {kind}; convert the model with a fixed "
                "input shape"
            )
        return shape

    def says_less(self, tensor: int) -> bool:
        """Return whether the file leaves an extent of a tensor, other than the batch, unknown."""
        return -1 in self.tensors[tensor].ints(TensorField.SHAPE_SIGNATURE)[1:]

    def patched(self) -> bytes:
        """Return the file with changed and completed shapes."""
        made = bytearray(self.data)
        written: dict[int, Shape] = {}
        unsaid = {t for t in self.found if self.says_less(t)}
        for tensor in sorted(unsaid | self.changed.keys()):
            shape = self.shape(tensor)
            start, length = self.tensors[tensor].span(TensorField.SHAPE, 4)
            name = self.tensors[tensor].string(TensorField.NAME)
            if length != len(shape) or written.setdefault(start, shape) != shape:
                raise UnsupportedError(
                    f"tensor {name!r}: its shape {list(shape)} cannot be stored in the file; "
                    "convert the model with a fixed input shape"
                )
            struct.pack_into(f"<{length}i", made, start, *shape)
            start, length = self.tensors[tensor].span(TensorField.SHAPE_SIGNATURE, 4)
            if length == len(shape):
                struct.pack_into(f"<{length}i", made, start, *shape)
        shared = {
            table.span(TensorField.SHAPE, 4)[0]
            for index, table in enumerate(self.tensors)
            if index not in self.changed and index not in unsaid
        }
        if shared & written.keys():
            raise UnsupportedError(
                "tensors whose shape depends on the batch share their stored shape with "
                "others; convert the model with a fixed input shape"
            )
        return bytes(made)
