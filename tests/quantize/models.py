"""Small quantised ``.tflite`` files made on the spot, and the shared ones that must be exact."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

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


_VERSIONS = {
    "CONV_2D": 3,
    "DEPTHWISE_CONV_2D": 3,
    "FULLY_CONNECTED": 4,
    "HARD_SWISH": 1,
    "SUM": 1,
    "CUMSUM": 1,
}
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
    "SUM": "ReducerOptions",
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


TABLE = (
    "mlperf_tiny/kws_dscnn_int8.tflite",
    "mlperf_tiny/vww_mobilenetv1_96_int8.tflite",
    "mlperf_tiny/ic_resnet8_int8.tflite",
    "mlperf_tiny/ad01_int8.tflite",
    "tflm/person_detect.tflite",
    "tflm/micro_speech_quantized.tflite",
    "tflm/hello_world_int8.tflite",
    "tflm/keyword_scrambled_8bit.tflite",
    "mcunet/mcunet_vww_int8.tflite",
    "swiftnet/swiftnet_vww_224_uint8.tflite",
    "mltk/mltk_keyword_spotting_on_off_v3.tflite",
    "misc/mobilenet_v1_0.25_128_quant.tflite",
)
"""The quantised models of the shared data that must run exactly."""
