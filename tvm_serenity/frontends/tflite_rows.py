"""``.tflite`` files as networks by rows, without TVM.

The result describes what a kernel of each operator could do; ``relax/rows_read.py`` reads the same
from the kernels that run.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.frontends._flatbuffer import Table, root_table
from tvm_serenity.frontends._tflite_schema import (
    BufferField,
    ModelField,
    OperatorField,
    SubgraphField,
    TensorField,
)
from tvm_serenity.frontends.tflite_file import TfliteFile
from tvm_serenity.frontends.tflite_phases import Dilated, dilated
from tvm_serenity.graph import Graph, Op, Role, Tensor
from tvm_serenity.graph.row_axes import by_rows, stored_axes
from tvm_serenity.operators import Seen, operator
from tvm_serenity.operators.needs import Need, RowSources, everything
from tvm_serenity.rows.network import (
    Feature,
    Layer,
    Network,
    composed,
)

ITEM_BYTES = {"int8": 1, "uint8": 1, "bool": 1, "int16": 2, "float16": 2, "float32": 4, "int32": 4}


@dataclass(frozen=True)
class _NoOptions:
    """The options of an operator that has none in the file; reading one raises."""

    kind: str

    def u8(self, number: int, default: int = 0) -> int:
        raise UnsupportedError(f"{self.kind} without options is not computed row by row")

    i32 = u8

    def f32(self, number: int, default: float = 0.0) -> float:
        return float(self.u8(number))

    def ints(self, number: int) -> tuple[int, ...]:
        return (self.u8(number),)


def network_of(file: TfliteFile) -> Network:
    """Return the network of a ``.tflite`` file, with padding folded into the next layers.

    A convolution of phases is a dilated convolution. Raises :class:`UnsupportedError` if the file
    keeps state between runs.
    """
    graph = file.graph
    for tensor in graph.tensors:
        if tensor.role is Role.STATE:
            raise UnsupportedError(
                f"{graph.name}: keeps state {tensor.name!r} between runs, which row streaming "
                "does not support"
            )
    model = root_table(file.data, b"TFL3")
    main = model.tables(ModelField.SUBGRAPHS)[0]
    tensors, operators = (main.tables(f) for f in (SubgraphField.TENSORS, SubgraphField.OPERATORS))
    buffers = model.tables(ModelField.BUFFERS)

    def constant(tensor: int) -> tuple[int, ...]:
        return _integers(buffers[tensors[tensor].u32(TensorField.BUFFER)], graph.tensors[tensor])

    graph, numbers, phases = dilated(graph, constant)
    reader = _Reader(graph, [operators[number] for number in numbers], constant, phases)
    layers = [
        layer
        for index, op in enumerate(graph.ops)
        if index not in graph.constant_ops
        for layer in reader.summed(reader.layer(index, op))
    ]
    return folded_padding(reader.network(layers))


def folded_padding(network: Network) -> Network:
    """Return ``network`` without PAD layers that only layers by rows read."""
    for index, layer in enumerate(network.layers):
        if (
            not operator(layer.kind).rows.pads
            or not layer.splits
            or layer.outputs[0] in network.contiguous
        ):
            continue
        (inner,) = (need for need in layer.needs if need is not None)
        layers = [
            _past(other, layer.outputs[0], layer.inputs[0], inner)
            for i, other in enumerate(network.layers)
            if i != index
        ]
        return folded_padding(replace(network, layers=tuple(layers)))
    return network


def _past(layer: Layer, made: int, source: int, inner: Need) -> Layer:
    needs = tuple(
        composed(need, inner) if f == made and need is not None else need
        for f, need in zip(layer.inputs, layer.needs, strict=True)
    )
    inputs = tuple(source if f == made else f for f in layer.inputs)
    return replace(layer, inputs=inputs, needs=needs)


class _Reader:
    """Reads a graph; ``operators``: the tables of its operators.

    ``constant``: the integers of a constant. ``phases``: its dilated convolutions of phases.
    """

    def __init__(
        self,
        graph: Graph,
        operators: Sequence[Table],
        constant: Callable[[int], tuple[int, ...]],
        phases: Mapping[int, Dilated],
    ) -> None:
        self.graph = graph
        self.operators = operators
        self.constant = constant
        self.phases = phases
        self.axes = stored_axes(graph, self.moved)
        known = zip(graph.tensors, self.axes, strict=True)
        self.shapes = tuple(
            tensor.shape or () if axis is None else by_rows(tensor.shape or (), axis)
            for tensor, axis in known
        )
        self.alias: dict[int, int] = {}
        self.sums: list[Feature] = []

    def height(self, tensor: int) -> int:
        """Return the rows of a tensor; one if it has none."""
        return 1 if self.axes[tensor] is None else self.shapes[tensor][1]

    def feature(self, tensor: int) -> Feature:
        known, height = self.graph.tensors[tensor], self.height(tensor)
        return Feature(
            known.name,
            height,
            known.size_bytes // height,
            ITEM_BYTES.get(known.dtype, 8),
            self.shapes[tensor],
            known.dtype,
        )

    def network(self, layers: Sequence[Layer]) -> Network:
        graph = self.graph
        features = (*(self.feature(t) for t in range(len(graph.tensors))), *self.sums)
        kept = tuple(
            replace(layer, inputs=tuple(self.alias.get(t, t) for t in layer.inputs))
            for layer in layers
            if layer.outputs[0] not in self.alias
        )
        made = (t for t in graph.outputs if graph.in_profile[t])  # a constant takes no memory
        outputs = tuple(dict.fromkeys(self.alias.get(t, t) for t in made))
        return Network(graph.name, features, kept, graph.inputs, outputs)

    def layer(self, index: int, op: Op) -> Layer:
        inputs = tuple(t for t in op.inputs if self.graph.in_profile[t])
        height = self.height(op.outputs[0])
        if len(inputs) == 1 and self.shows(index, op):
            source = inputs[0]
            if self.height(source) == height:
                self.alias[op.outputs[0]] = self.alias.get(source, source)
            return Layer(op.name, op.kind, inputs, op.outputs, (None,), view=True)
        try:
            found = self.needs(index, op, inputs, height)
        except UnsupportedError as reason:
            whole = str(reason) if self.has_rows(op) else ""
            return Layer(op.name, op.kind, inputs, op.outputs, (None,) * len(inputs), whole=whole)
        return Layer(op.name, op.kind, inputs, op.outputs, found)

    def summed(self, layer: Layer) -> list[Layer]:
        """Return a mean over all rows as two layers: 4-byte sums of rows, and their division."""
        rows = self.height(layer.inputs[0]) if layer.inputs else 1
        if (
            not operator(layer.kind).rows.summed
            or rows == 1
            or layer.needs != (everything(1, rows),)
        ):
            return [layer]
        kept = self.graph.tensors[layer.outputs[0]]
        size = 4 * kept.size_bytes // ITEM_BYTES.get(kept.dtype, 4)
        sums = len(self.graph.tensors) + len(self.sums)
        self.sums.append(Feature(f"{layer.name}.sums", 1, size, 4))
        return [
            replace(layer, name=f"{layer.name}.sum", outputs=(sums,), sums=True),
            replace(layer, inputs=(sums,), needs=(None,)),
        ]

    def has_rows(self, op: Op) -> bool:
        return any(
            self.height(t) > 1 for t in (*op.inputs, *op.outputs) if self.graph.in_profile[t]
        )

    def shows(self, index: int, op: Op) -> bool:
        """Return whether the result has the bytes of the only input."""
        known, axis = operator(op.kind), self.axes[op.outputs[0]]
        if known.rows.free is None or axis is None or self.moved(index, self.axes) != axis:
            return known.storage.view
        return known.rows.free(RowSources(**self.given(index, self.axes)))

    def moved(self, index: int, axes: Sequence[int | None]) -> int | None:
        """Return the axis of the rows of an operator's result, None if it does what all do."""
        found = operator(self.graph.ops[index].kind).rows.axis
        return None if found is None else found(RowSources(**self.given(index, axes)))

    def given(self, index: int, axes: Sequence[int | None]) -> dict[str, Any]:
        """Return the fields of :class:`RowSources`."""
        op, graph = self.graph.ops[index], self.graph
        options = self.operators[index].table(OperatorField.BUILTIN_OPTIONS)
        operands = [i for i, t in enumerate(op.inputs) if graph.in_profile[t]]
        return {
            "name": op.name,
            "kind": op.kind,
            "operands": operands,
            "axes": [axes[op.inputs[i]] for i in operands],
            "shapes": [graph.tensors[t].shape or () for t in op.inputs],
            "made": graph.tensors[op.outputs[0]].shape or (),
            "options": _NoOptions(op.kind) if options is None else options,
            "constant": lambda operand: self.constant(op.inputs[operand]),
        }

    def needs(
        self, index: int, op: Op, inputs: tuple[int, ...], height: int
    ) -> tuple[Need | None, ...]:
        """Return the rows needed of each input; raise :class:`UnsupportedError` with a reason."""
        if len({self.height(t) for t in op.outputs}) > 1:
            raise UnsupportedError("its outputs have different heights")
        known = operator(op.kind)
        if known.rows.needs is None:
            raise UnsupportedError(f"{op.kind} is not computed row by row")
        seen = Seen(
            **self.given(index, self.axes),
            height=height,
            sources=[self.height(t) for t in inputs],
            axis=self.axes[op.outputs[0]],
            outputs=len(op.outputs),
        )
        phases, axis = self.phases.get(index), self.axes[op.outputs[0]]
        if phases is None or axis is None:
            return known.rows.needs(seen)
        if self.axes[inputs[0]] != axis:
            raise UnsupportedError(f"{op.kind} of phases moves its rows to another axis")
        return phases.needs(seen, axis, height, self.height(inputs[0]))


def _integers(buffer: Table, known: Tensor) -> tuple[int, ...]:
    """Return the values of an integer constant; empty if the file lacks them."""
    start, length = buffer.span(BufferField.DATA, 1)
    code = {"int32": "i", "int64": "q"}.get(known.dtype)
    if code is None:
        return ()
    return struct.unpack_from(
        f"<{length // struct.calcsize(code)}{code}", buffer.source.data, start
    )
