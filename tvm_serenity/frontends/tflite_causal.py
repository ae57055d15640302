"""Replace a ``.tflite`` network's padding in time by rows of the past.

Convolutions and pools that pad rows read earlier rows of the stream instead: the window starts
earlier, by the look-back of all layers. Only the start of the stream is padded in time, and rows
have the same values in each window that contains them. Weights, column padding, and layers after
the last one with rows do not change.

The function of a window changes: rows at its edges read samples instead of zeros.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.frontends._tflite_objects import kinds, read, schema, written
from tvm_serenity.operators import OPERATORS

PADDED_COLUMNS = "PAD"
WHAT = "--causal"


@dataclass(frozen=True)
class CausalFile:
    """The new file, the rows of its window (``rows``), and those of the old file (``before``)."""

    data: bytes
    rows: int
    before: int


def causal(data: bytes, name: str) -> CausalFile:
    """Return a ``.tflite`` network with rows of the past instead of padding in time.

    Raises :class:`UnsupportedError` if branches of different look-back meet, or rows are moved.
    """
    model = read(data, WHAT)
    if len(model.subgraphs) != 1 or len(model.subgraphs[0].inputs) != 1:
        raise UnsupportedError(f"{name}: --causal needs a model with one subgraph and one input")
    return _Rewriting(schema(WHAT), model, name).file()


@dataclass
class _Rewriting:
    schema: Any
    model: Any
    name: str
    needed: dict[int, tuple[int, str]] = field(default_factory=dict)
    """The rows that a tensor must have, and the operator that requires them."""

    def __post_init__(self) -> None:
        self.graph = self.model.subgraphs[0]
        self.kinds = kinds(self.model, WHAT)

    def file(self) -> CausalFile:
        for op in reversed(self.graph.operators):
            self.look_back(op)
        before = self.rows_in(self.graph.inputs[0])
        for op in list(self.graph.operators):
            self.rewrite(op)
        for tensor, (rows, _) in self.needed.items():
            shape = self.shape(tensor)
            if len(shape) == 4:
                shape = [shape[0], rows, *shape[2:]]
                self.graph.tensors[tensor].shape = np.array(shape, np.int32)
                self.graph.tensors[tensor].shapeSignature = None
        return CausalFile(written(self.model), self.rows_in(self.graph.inputs[0]), before)

    def kind(self, op: Any) -> str:
        return str(self.kinds[op.opcodeIndex])

    def shape(self, tensor: int) -> list[int]:
        return [int(extent) for extent in self.graph.tensors[tensor].shape]

    def label(self, tensor: int) -> str:
        return str(self.graph.tensors[tensor].name.decode(errors="replace"))

    def rows_in(self, tensor: int) -> int:
        """Return the rows of the input, even if it is flat and reshaped first."""
        shape = self.shape(tensor)
        if len(shape) == 4:
            return shape[1]
        readers = [op for op in self.graph.operators if tensor in list(op.inputs)]
        made = self.shape(readers[0].outputs[0]) if len(readers) == 1 else []
        if len(made) != 4 or self.kind(readers[0]) != "RESHAPE":
            raise UnsupportedError(f"{self.name}: --causal: its input of shape {shape} has no rows")
        return made[1]

    def look_back(self, op: Any) -> None:
        """Record the rows that an operator needs of its inputs."""
        kind, made = self.kind(op), int(op.outputs[0])
        rows = self.needed.get(made, (0, ""))[0]
        own = self.shape(made)
        if self.has_windows(op) and len(own) == 4:
            taps, stride = self.window(op)
            self.need(int(op.inputs[0]), ((rows or own[1]) - 1) * stride + taps, made)
        elif kind in OPERATORS and OPERATORS[kind].maps and len(own) == 4:
            for tensor in op.inputs:
                if len(self.shape(tensor)) == 4 and self.shape(tensor)[1] > 1:
                    self.need(int(tensor), rows or own[1], made)
        elif kind == "RESHAPE" and int(op.inputs[0]) == int(self.graph.inputs[0]):
            return
        else:
            if rows and rows != (own[1] if len(own) == 4 else rows):
                what = f"{kind} computes {self.label(made)} from all its rows"
                raise UnsupportedError(
                    f"{self.name}: --causal: {what}, whose number changes; this is not supported"
                )
            for tensor in op.inputs:
                if tensor >= 0 and len(self.shape(tensor)) == 4:
                    self.need(int(tensor), self.shape(tensor)[1], made)

    def need(self, tensor: int, rows: int, reader: int) -> None:
        held = self.graph.tensors[tensor].buffer
        data = self.model.buffers[held].data
        if data is not None and len(data):
            what = (
                f"the constant {self.label(tensor)} has a value for each row, but the number "
                "of rows grows"
            )
            raise UnsupportedError(f"{self.name}: --causal: {what}")
        known = self.needed.setdefault(tensor, (rows, self.label(reader)))
        if known[0] != rows:
            raise UnsupportedError(
                f"{self.name}: --causal: the readers {known[1]} and {self.label(reader)} "
                f"of {self.label(tensor)} need {known[0]} and {rows} rows; branches must "
                "have the same look-back"
            )

    def has_windows(self, op: Any) -> bool:
        """Return whether an operator reads several rows per result: a convolution or a pool."""
        schema = self.schema
        forms = (schema.Conv2DOptionsT, schema.DepthwiseConv2DOptionsT, schema.Pool2DOptionsT)
        return isinstance(op.builtinOptions, forms)

    def window(self, op: Any) -> tuple[int, int]:
        """Return the rows that a result row spans, and the stride."""
        options = op.builtinOptions
        if self.kind(op).endswith("POOL_2D"):
            return int(options.filterHeight), int(options.strideH)
        taps = self.shape(op.inputs[1])[1]
        return (taps - 1) * int(options.dilationHFactor) + 1, int(options.strideH)

    def rewrite(self, op: Any) -> None:
        if self.kind(op) == "RESHAPE" and int(op.inputs[0]) == int(self.graph.inputs[0]):
            self.reshaped(op)
        options = op.builtinOptions
        if not self.has_windows(op) or options.padding == self.schema.Padding.VALID:
            return
        left, right = self.columns(op)
        if left or right:
            if self.kind(op).endswith("POOL_2D"):
                what = self.label(op.outputs[0])
                raise UnsupportedError(
                    f"{self.name}: --causal: pool {what} pads columns, which is not supported"
                )
            self.pad(op, left, right)
        options.padding = self.schema.Padding.VALID

    def columns(self, op: Any) -> tuple[int, int]:
        """Return the left and right column padding of SAME."""
        options, width = op.builtinOptions, self.shape(op.inputs[0])[2]
        pool = self.kind(op).endswith("POOL_2D")
        taps = int(options.filterWidth) if pool else self.shape(op.inputs[1])[2]
        reach = taps if pool else (taps - 1) * int(options.dilationWFactor) + 1
        made = self.shape(op.outputs[0])[2]
        total = max(0, (made - 1) * int(options.strideW) + reach - width)
        return total // 2, total - total // 2

    def pad(self, op: Any, left: int, right: int) -> None:
        """Insert a PAD before a convolution that pads only its columns."""
        source = int(op.inputs[0])
        known = self.graph.tensors[source]
        amounts = np.array([[0, 0], [0, 0], [left, right], [0, 0]], np.int32)
        padding = self.tensor(f"{self.label(source)}_columns", [4, 2], self.schema.TensorType.INT32)
        self.model.buffers[self.graph.tensors[padding].buffer].data = np.frombuffer(
            amounts.tobytes(), np.uint8
        )
        rows, _ = self.needed[source]
        _, _, width, channels = self.shape(source)
        wide = [1, rows, width + left + right, channels]
        made = self.tensor(
            f"{self.label(source)}_padded_{len(self.graph.tensors)}", wide, known.type
        )
        self.graph.tensors[made].quantization = known.quantization
        added = self.schema.OperatorT()
        added.opcodeIndex = self.opcode(PADDED_COLUMNS)
        added.inputs = np.array([source, padding], np.int32)
        added.outputs = np.array([made], np.int32)
        added.builtinOptionsType = self.schema.BuiltinOptions.PadOptions
        added.builtinOptions = self.schema.PadOptionsT()
        at = next(i for i, other in enumerate(self.graph.operators) if other is op)
        self.graph.operators.insert(at, added)
        op.inputs = np.array([made, *list(op.inputs)[1:]], np.int32)

    def tensor(self, name: str, shape: Sequence[int], dtype: int) -> int:
        """Return a new tensor with a buffer of its own."""
        self.model.buffers.append(self.schema.BufferT())
        made = self.schema.TensorT()
        made.name, made.shape, made.type = name.encode(), np.array(shape, np.int32), dtype
        made.buffer = len(self.model.buffers) - 1
        self.graph.tensors.append(made)
        return len(self.graph.tensors) - 1

    def opcode(self, kind: str) -> int:
        if kind not in self.kinds:
            code = self.schema.OperatorCodeT()
            code.builtinCode = code.deprecatedBuiltinCode = getattr(
                self.schema.BuiltinOperator, kind
            )
            code.version = 1
            self.model.operatorCodes.append(code)
            self.kinds.append(kind)
        return self.kinds.index(kind)

    def reshaped(self, op: Any) -> None:
        """Change the RESHAPE of a flat input, and the input, to the new number of rows."""
        made = int(op.outputs[0])
        rows = self.needed.get(made, (self.shape(made)[1], ""))[0]
        _, _, width, channels = self.shape(made)
        shape = np.array([1, rows, width, channels], np.int32)
        if op.builtinOptions is not None:
            op.builtinOptions.newShape = shape
        if len(op.inputs) > 1:
            held = self.graph.tensors[int(op.inputs[1])].buffer
            self.model.buffers[held].data = np.frombuffer(shape.tobytes(), np.uint8)
        flat = self.graph.tensors[int(op.inputs[0])]
        flat.shape = np.array([1, rows * width * channels], np.int32)
        flat.shapeSignature = None
