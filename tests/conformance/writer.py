"""``.tflite`` files of one subgraph, written operator by operator.

    data = tflite(
        [T((1, 4), "int8", 0.1, 3), T((1, 4), "int8", 0.2)],   # tensors, by index
        [Node("RELU", [0], [1])],                              # operators
        inputs=[0], outputs=[1],
    )

Everything else is the schema's: which options table an operator has (``options_table``), and the
fields that table has. An input of index -1 is left out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

Array = npt.NDArray[Any]
TYPES = {
    "float32": 0,
    "float16": 1,
    "int32": 2,
    "uint8": 3,
    "int64": 4,
    "bool": 6,
    "int16": 7,
    "int8": 9,
    "float64": 10,
    "uint64": 12,
    "resource": 13,
    "uint32": 15,
    "uint16": 16,
    "int4": 17,
}
"""Element types by their numbers in the file. Data of int4 is given as int8 of -8 to 7."""


@dataclass(frozen=True)
class T:
    """A tensor of a made-up file: quantised if it has scales; a constant if it has data.

    ``axis`` is that of the channels where there are several scales.
    """

    shape: tuple[int, ...]
    dtype: str = "int8"
    scale: float | Sequence[float] | None = None
    zero: int | Sequence[int] = 0
    data: Array | None = None
    axis: int = 0
    name: str = ""
    variable: bool = False
    signature: tuple[int, ...] = ()
    """The shape with -1 for what is unknown; empty: all is known."""


@dataclass(frozen=True)
class Node:
    """An operator of a made-up file; ``options`` are the fields of its options table.

    A kind that the schema does not have is a custom operator.
    ``table`` overrides the table of options that the schema has for ``kind``. ``version`` is 1
    unless given: LiteRT's kernels do not read it. ``intermediates``: tensors within the operator.
    """

    kind: str
    inputs: Sequence[int]
    outputs: Sequence[int]
    options: dict[str, Any] = field(default_factory=dict)
    version: int = 1
    table: str = ""
    intermediates: Sequence[int] = ()


_SHARED = {
    "Pool2DOptions": "AVERAGE_POOL_2D MAX_POOL_2D L2_POOL_2D",
    "ReducerOptions": ("MEAN SUM REDUCE_PROD REDUCE_MAX REDUCE_MIN REDUCE_ANY REDUCE_ALL"),
    "MaximumMinimumOptions": "MAXIMUM MINIMUM",
    "SequenceRNNOptions": "UNIDIRECTIONAL_SEQUENCE_RNN",
    "L2NormOptions": "L2_NORMALIZATION",
    "Conv3DOptions": "CONV_3D_TRANSPOSE",
    "RandomOptions": "MULTINOMIAL RANDOM_STANDARD_NORMAL RANDOM_UNIFORM",
}
"""Options tables of operators that are not called like their table."""


@cache
def options_table(kind: str) -> str:
    """Return the name of the table that holds the options of an operator, "" if it has none."""
    schema = _schema()
    for table, kinds in _SHARED.items():
        if kind in kinds.split():
            return table
    wanted = kind.replace("_", "").lower() + "options"
    names = (*vars(schema.BuiltinOptions), *vars(schema.BuiltinOptions2))
    return next((name for name in names if name.lower() == wanted), "")


@dataclass(frozen=True)
class Subgraph:
    """A further subgraph of a made-up file, which operators run by its number (from 1).

    ``signature``: the name of the entry point that it is, if it is one.
    """

    tensors: Sequence[T]
    nodes: Sequence[Node]
    inputs: Sequence[int] = ()
    outputs: Sequence[int] = ()
    signature: str = ""


def tflite(
    tensors: Sequence[T],
    nodes: Sequence[Node],
    inputs: Iterable[int],
    outputs: Iterable[int],
    further: Sequence[Subgraph] = (),
    signature: str = "",
) -> bytes:
    """Return the bytes of a ``.tflite`` file of one subgraph and those that it runs.

    ``signature`` names the first one as an entry point.
    """
    flatbuffers = pytest.importorskip("flatbuffers")
    schema = _schema()
    model = schema.ModelT()
    model.version, model.buffers, model.operatorCodes = 3, [schema.BufferT()], []
    main = Subgraph(tensors, nodes, list(inputs), list(outputs), signature)
    model.subgraphs = [_subgraph(model, graph) for graph in (main, *further)]
    model.signatureDefs = [
        _signature(graph, number)
        for number, graph in enumerate((main, *further))
        if graph.signature
    ] or None
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _schema() -> Any:
    return pytest.importorskip("ai_edge_litert.schema_py_generated")


def _signature(graph: Subgraph, number: int) -> Any:
    made = _schema().SignatureDefT()
    made.signatureKey, made.subgraphIndex = graph.signature, number
    for which in ("inputs", "outputs"):
        entries = []
        for tensor in getattr(graph, which):
            entry = _schema().TensorMapT()
            entry.name, entry.tensorIndex = graph.tensors[tensor].name or f"t{tensor}", tensor
            entries.append(entry)
        setattr(made, which, entries)
    return made


def _subgraph(model: Any, graph: Subgraph) -> Any:
    made = _schema().SubGraphT()
    made.inputs, made.outputs = list(graph.inputs), list(graph.outputs)
    made.tensors = [_tensor(model, i, tensor) for i, tensor in enumerate(graph.tensors)]
    made.operators = [_operator(model, node) for node in graph.nodes]
    return made


def _operator(model: Any, node: Node) -> Any:
    schema = _schema()
    code, made = schema.OperatorCodeT(), schema.OperatorT()
    custom = not hasattr(schema.BuiltinOperator, node.kind)
    code.builtinCode = getattr(schema.BuiltinOperator, "CUSTOM" if custom else node.kind)
    code.customCode = node.kind if custom else None
    code.deprecatedBuiltinCode = min(code.builtinCode, 127)
    code.version = node.version
    made.opcodeIndex = len(model.operatorCodes)
    model.operatorCodes.append(code)
    made.inputs, made.outputs = list(node.inputs), list(node.outputs)
    made.intermediates = list(node.intermediates) or None
    table = node.table or options_table(node.kind)
    if custom:
        made.customOptions = np.frombuffer(_flexible(node.options), np.uint8)
    elif table:
        options = getattr(schema, table + "T")()
        for key, value in node.options.items():
            if not hasattr(options, key):
                raise AttributeError(f"{table} of {node.kind} has no field {key}")
            setattr(options, key, value)
        second = not hasattr(schema.BuiltinOptions, table)
        number = getattr(schema.BuiltinOptions2 if second else schema.BuiltinOptions, table)
        field_name = "builtinOptions2" if second else "builtinOptions"
        setattr(made, field_name + "Type", number)
        setattr(made, field_name, options)
    elif node.options:
        raise AttributeError(f"{node.kind} has no options")
    return made


def _flexible(options: dict[str, Any]) -> bytes:
    """The options of a custom operator: a map, as TensorFlow writes it."""
    flexbuffers = pytest.importorskip("flatbuffers.flexbuffers")
    return bytes(flexbuffers.Dumps(options))


def _tensor(model: Any, index: int, tensor: T) -> Any:
    schema = _schema()
    made = schema.TensorT()
    made.name, made.shape = tensor.name or f"t{index}", list(tensor.shape)
    if tensor.signature:
        made.shapeSignature = list(tensor.signature)
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
        buffer.data = np.frombuffer(_bytes(tensor), np.uint8)
        made.buffer = len(model.buffers)
        model.buffers.append(buffer)
    return made


def _bytes(tensor: T) -> bytes:
    assert tensor.data is not None
    if tuple(tensor.data.shape) != tuple(tensor.shape):
        raise ValueError(f"data of shape {tensor.data.shape} for a tensor of {tensor.shape}")
    if tensor.dtype != "int4":
        return tensor.data.astype(tensor.dtype).tobytes()
    nibbles = tensor.data.astype(np.int8).reshape(-1).view(np.uint8) & 15
    nibbles = np.append(nibbles, np.zeros(nibbles.size % 2, np.uint8))
    return bytes((nibbles[0::2] | nibbles[1::2] << 4).tobytes())
