"""The check of ``.tflite`` operators without TVM: which cannot be compiled, and why.

Each operator is looked up in ``operators`` and in the list of operators that TVM's importer
converts. A quantised operator is read as its record, as at import; the reader's error is the
reason. Errors that only an import can find are left to it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tvm_serenity.errors import InputError, UnsupportedError
from tvm_serenity.frontends._flatbuffer import Table, empty_table, root_table
from tvm_serenity.frontends._flexbuffer import custom_options, flexible
from tvm_serenity.frontends._importable import TFLITE, TFLITE_QUANTISED
from tvm_serenity.frontends._tflite_schema import (
    TENSOR_TYPES,
    BufferField,
    ModelField,
    OperatorField,
    SubgraphField,
    TensorField,
)
from tvm_serenity.graph import Graph, Role
from tvm_serenity.operators import Operator, operator
from tvm_serenity.operators.scene import Scene, SceneTensor
from tvm_serenity.quantize.params import Affine, affine

_INTERMEDIATES = 8
_SCALE, _ZERO_POINT, _AXIS = 2, 3, 6
_WIDE = {"int4": "int8"}
Refusal = tuple[str, str, str]
"""Operator kind, operator name, and reason."""


def lacking(
    kind: str,
    given: Sequence[SceneTensor | None],
    made: Sequence[SceneTensor],
) -> str:
    """Return why an operator with these inputs and results is not supported, or ""."""
    known = operator(kind)
    ours = known.numbers.form is not None or known.integers.read is not None
    if kind not in TFLITE and not ours:
        return f"TVM's importer does not support {kind}"
    if known.refused:
        return known.refused
    quantised = any(t is not None and t.params is not None for t in (*given, *made))
    taken = known.integers.moves or known.integers.read is not None or kind in TFLITE_QUANTISED
    if quantised and (known.integers.float_only or not taken):
        return f"quantised {kind} is not supported"
    sums = known.layer.sums
    if sums is not None and len(given) > sums.bias:
        types = [None if t is None else t.dtype for t in (given[sums.source], given[sums.bias])]
        if types == ["int16", "int32"]:
            return "a 32-bit bias with 16-bit values is not supported; use a 64-bit bias"
    if weights_alone(given, made) and sums is None and known.integers.dynamic is None:
        return f"a float {kind} with quantised weights is not supported"
    return ""


def weights_alone(given: Sequence[SceneTensor | None], made: Sequence[SceneTensor]) -> bool:
    """Return whether only inputs after the first are quantised."""
    stored = [t is not None and t.params is not None for t in given]
    if not stored or not made or stored[0] or any(t.params is not None for t in made):
        return False
    return any(stored)


@dataclass(frozen=True)
class Meanings:
    """The operators of a file's main graph; ``skipped``: kinds that the user implements."""

    data: bytes
    graph: Graph
    skipped: frozenset[str]

    def refused(self, integers: bool) -> list[Refusal]:
        """Return the reasons that stop the model; ``integers``: also read quantised operators."""
        return list(self._refused(integers))

    def _refused(self, integers: bool) -> Iterator[Refusal]:
        for index, op in enumerate(self.graph.ops):
            if op.kind in self.skipped:
                continue
            scene = self.scene(index)
            why = lacking(op.kind, scene.operands, scene.results)
            if not why and integers:
                why = self._unread(operator(op.kind), scene)
            if why:
                making = self.graph.tensors[op.outputs[0]].name if op.outputs else "nothing"
                yield op.kind, f" that makes {making!r}", why

    def _unread(self, known: Operator, scene: Scene) -> str:
        """Return why a quantised operator cannot be read as a record, or ""."""
        if known.integers.read is None or known.integers.compute is None:
            return ""
        alone = known.integers.dynamic is not None and weights_alone(scene.operands, scene.results)
        given, sums = scene.operands, known.layer.sums
        if sums is not None:
            given = given[sums.source : sums.source + 1]
        tensors = [t for t in (*given, *scene.results) if t is not None]
        if not known.integers.exact and (alone or all(t.params is None for t in tensors)):
            return ""
        try:
            known.integers.read(scene)
        except UnsupportedError as error:
            return str(error)
        except Exception:  # the import reports errors that depend on more than the file
            return ""
        return ""

    def scene(self, index: int) -> Scene:
        """Return the view of an operator that records are read from."""
        table, kind = self._operators[index], self.graph.ops[index].kind
        options = table.table(OperatorField.BUILTIN_OPTIONS)
        given = list(table.ints(OperatorField.INPUTS))
        given += [t for t in self.graph.ops[index].inputs if t >= len(self._tensors)]
        if operator(kind).state.holds:
            given += table.ints(OperatorField.OUTPUTS)[:1]
        sums = operator(kind).layer.sums
        if sums is not None and len(given) == sums.bias + 1 and given[-1] == -1:
            given.pop()
        return Scene(
            kind,
            [None if t == -1 else self._tensor(t, True) for t in given],
            [self._tensor(t, False) for t in table.ints(OperatorField.OUTPUTS)],
            empty_table() if options is None else options,
            options is not None,
            intermediates=[self._tensor(t, False) for t in self._intermediates(table)],
            custom=flexible(custom_options(table)),
        )

    def _intermediates(self, table: Table) -> tuple[int, ...]:
        """Return the internal tensors that an operator names."""
        found = table.ints(_INTERMEDIATES)
        if not all(0 <= t < len(self._tensors) for t in found):
            raise InputError("an operator refers to an intermediate tensor that does not exist")
        return found

    @cached_property
    def _model(self) -> Table:
        return root_table(self.data, b"TFL3")

    @cached_property
    def _main(self) -> Table:
        return self._model.tables(ModelField.SUBGRAPHS)[0]

    @cached_property
    def _operators(self) -> tuple[Table, ...]:
        return self._main.tables(SubgraphField.OPERATORS)

    @cached_property
    def _tensors(self) -> tuple[Table, ...]:
        return self._main.tables(SubgraphField.TENSORS)

    @cached_property
    def _buffers(self) -> tuple[Table, ...]:
        return self._model.tables(ModelField.BUFFERS)

    def _tensor(self, index: int, given: bool) -> SceneTensor:
        known = self.graph.tensors[index]
        shape, dtype = known.shape or (), known.dtype or ""
        if index >= len(self._tensors):  # a state that the file does not list
            return SceneTensor(shape, dtype)
        table = self._tensors[index]
        dtype = TENSOR_TYPES[table.u8(TensorField.TYPE)][0]
        shape = table.ints(TensorField.SHAPE)
        constant = given and known.role is Role.CONSTANT
        values = self._values(table, shape, dtype) if constant else None
        dtype = _WIDE.get(dtype, dtype)
        return SceneTensor(shape, dtype, _params(table, known.name, shape, dtype), values)

    def _values(self, table: Table, shape: Sequence[int], dtype: str) -> Any:
        """Return the numbers of a constant.

        Zeros for int4; None for sparse or non-numeric constants.
        """
        buffer = self._buffers[table.u32(TensorField.BUFFER)]
        start, size = buffer.span(BufferField.DATA, 1)
        if buffer.u64(BufferField.OFFSET) > 1:
            start, size = buffer.u64(BufferField.OFFSET), buffer.u64(BufferField.SIZE)
        if dtype == "int4":
            return np.zeros(shape, np.int8)
        if not size or dtype not in np.sctypeDict or table.table(TensorField.SPARSITY) is not None:
            return None
        count = size // np.dtype(dtype).itemsize
        if count != math.prod(shape) or start + size > len(self.data):
            raise InputError(
                f"a constant of shape {tuple(shape)} has {size:,} bytes, expected "
                f"{math.prod(shape) * np.dtype(dtype).itemsize:,}"
            )
        return np.frombuffer(self.data, dtype, count, start).reshape(shape)


def _params(table: Table, name: str, shape: tuple[int, ...], dtype: str) -> Affine | None:
    """Return the quantisation of a tensor; per-channel scales are checked as at import."""
    found = table.table(TensorField.QUANTIZATION)
    if found is None:
        return None
    data = found.source.data
    start, count = found.span(_SCALE, 4)
    if not count:
        return None
    scales = np.frombuffer(data, "<f4", count, start)
    begin, zeros = found.span(_ZERO_POINT, 8)
    points = np.frombuffer(data, "<i8", zeros, begin) if zeros else np.zeros(1, np.int64)
    axis = found.i32(_AXIS)
    if count > 1 and -len(shape) <= axis < len(shape):
        return affine(name, scales, points, dtype, axis, shape)
    return Affine(
        tuple(float(s) for s in scales), (int(points[0]),), dtype
    )  # a bias, or a tensor with one scale
