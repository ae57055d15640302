"""Small quantised ``.tflite`` files made on the spot, and LiteRT's reference kernels."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tvm_serenity.frontends._flatbuffer import root_table
from tvm_serenity.frontends._tflite_schema import ModelField, SubgraphField, TensorField

Array = npt.NDArray[Any]
TYPES = {"float32": 0, "float16": 1, "int32": 2, "uint8": 3, "int64": 4, "int16": 7, "int8": 9}


@dataclass(frozen=True)
class T:
    """A tensor of a made-up file: quantised if it has scales; a constant if it has data."""

    shape: tuple[int, ...]
    dtype: str = "int8"
    scale: float | Sequence[float] | None = None
    zero: int | Sequence[int] = 0
    data: Array | None = None
    axis: int = 0
    name: str = ""
    variable: bool = False


@dataclass(frozen=True)
class Node:
    """An operator of a made-up file; ``options`` are the fields of its options table."""

    kind: str
    inputs: Sequence[int]
    outputs: Sequence[int]
    options: dict[str, Any] = field(default_factory=dict)
    version: int = 0
    table: str = ""


_VERSIONS = {"CONV_2D": 3, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 4}
_TABLES = {
    "CONV_2D": "Conv2DOptions",
    "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions",
    "FULLY_CONNECTED": "FullyConnectedOptions",
    "AVERAGE_POOL_2D": "Pool2DOptions",
    "MAX_POOL_2D": "Pool2DOptions",
    "CONCATENATION": "ConcatenationOptions",
    "SVDF": "SVDFOptions",
    "MEAN": "ReducerOptions",
    "LEAKY_RELU": "LeakyReluOptions",
    "RESIZE_NEAREST_NEIGHBOR": "ResizeNearestNeighborOptions",
    "SOFTMAX": "SoftmaxOptions",
    "ADD": "AddOptions",
    "SUB": "SubOptions",
    "MUL": "MulOptions",
    "RESHAPE": "ReshapeOptions",
    "STRIDED_SLICE": "StridedSliceOptions",
    "TRANSPOSE": "TransposeOptions",
    "SQUEEZE": "SqueezeOptions",
    "SPLIT": "SplitOptions",
    "PAD": "PadOptions",
}


def tflite(
    tensors: Sequence[T], nodes: Sequence[Node], inputs: Sequence[int], outputs: Sequence[int]
) -> bytes:
    """The bytes of a ``.tflite`` file of one subgraph."""
    flatbuffers = pytest.importorskip("flatbuffers")
    schema = pytest.importorskip("ai_edge_litert.schema_py_generated")
    model, graph = schema.ModelT(), schema.SubGraphT()
    model.version, model.buffers, model.operatorCodes = 3, [schema.BufferT()], []
    graph.inputs, graph.outputs = list(inputs), list(outputs)
    graph.tensors = [_tensor(schema, model, i, tensor) for i, tensor in enumerate(tensors)]
    graph.operators = []
    for node in nodes:
        code, made = schema.OperatorCodeT(), schema.OperatorT()
        code.builtinCode = getattr(schema.BuiltinOperator, node.kind)
        code.deprecatedBuiltinCode = min(code.builtinCode, 127)
        code.version = node.version or _VERSIONS.get(node.kind, 2)
        made.opcodeIndex = len(model.operatorCodes)
        model.operatorCodes.append(code)
        made.inputs, made.outputs = list(node.inputs), list(node.outputs)
        table = node.table or _TABLES.get(node.kind)
        if table:
            made.builtinOptionsType = getattr(schema.BuiltinOptions, table)
            made.builtinOptions = getattr(schema, table + "T")()
            for key, value in node.options.items():
                assert hasattr(made.builtinOptions, key), key
                setattr(made.builtinOptions, key, value)
        graph.operators.append(made)
    model.subgraphs = [graph]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _tensor(schema: Any, model: Any, index: int, tensor: T) -> Any:
    made = schema.TensorT()
    made.name, made.shape = tensor.name or f"t{index}", list(tensor.shape)
    made.type, made.isVariable = TYPES[tensor.dtype], tensor.variable
    if tensor.scale is not None:
        made.quantization = schema.QuantizationParametersT()
        scales = np.atleast_1d(np.asarray(tensor.scale, np.float32))
        made.quantization.scale = scales
        made.quantization.zeroPoint = np.broadcast_to(
            np.asarray(tensor.zero, np.int64), scales.shape
        ).copy()
        made.quantization.quantizedDimension = tensor.axis
    if tensor.data is not None:
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(tensor.data.astype(tensor.dtype).tobytes(), np.uint8)
        made.buffer = len(model.buffers)
        model.buffers.append(buffer)
    return made


def with_axes_in_range(data: bytes) -> bytes:
    """The file with channel axis 0 for vectors, which LiteRT insists on and old files lack."""
    fixed = bytearray(data)
    main = root_table(data, b"TFL3").tables(ModelField.SUBGRAPHS)[0]
    for tensor in main.tables(SubgraphField.TENSORS):
        quantization = tensor.table(TensorField.QUANTIZATION)
        if quantization is not None and len(tensor.ints(TensorField.SHAPE)) == 1:
            position = quantization._field(6, 4)
            if position:
                struct.pack_into("<i", fixed, position, 0)
    return bytes(fixed)


class Referee:
    """LiteRT with its reference kernels."""

    def __init__(self, data: bytes, keep: bool = False) -> None:
        litert = pytest.importorskip("ai_edge_litert.interpreter")
        self.interpreter = litert.Interpreter(
            model_content=with_axes_in_range(data),
            experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF,
            experimental_preserve_all_tensors=keep,
        )
        self.interpreter.allocate_tensors()
        self.entries = self.interpreter.get_input_details()

    def inputs(self, fill: int | str) -> list[Array]:
        """Random inputs from seed ``fill``, or filled with "min", "max" or the "zero" point."""
        return [_input(entry, fill, i) for i, entry in enumerate(self.entries)]

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Return the outputs for ``inputs``, with state variables reset."""
        self.interpreter.reset_all_variables()
        for entry, value in zip(self.entries, inputs, strict=True):
            self.interpreter.set_tensor(entry["index"], value)
        self.interpreter.invoke()
        return [
            self.interpreter.get_tensor(entry["index"])
            for entry in self.interpreter.get_output_details()
        ]


def _input(entry: Any, fill: int | str, index: int) -> Array:
    shape, dtype = tuple(entry["shape"]), np.dtype(entry["dtype"])
    if dtype.kind == "f":
        if isinstance(fill, int):
            rng = np.random.default_rng([fill, index])
            return np.asarray(rng.uniform(-2, 2, shape), dtype)
        return np.full(shape, {"min": -1e3, "max": 1e3, "zero": 0.0}[fill], dtype)
    limits = np.iinfo(dtype)
    if isinstance(fill, int):
        rng = np.random.default_rng([fill, index])
        values = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
        return np.asarray(values)
    zero = entry["quantization"][1]
    return np.full(shape, {"min": limits.min, "max": limits.max, "zero": zero}[fill], dtype)
