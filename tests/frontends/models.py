"""Small model files made on the spot, where the shared ones are, and orders to try on them."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tvm_serenity.graph import Graph

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "models"
SWIFTNET = "swiftnet/swiftnet_vww_224_uint8.tflite"
SHUFFLENET = "onnx_light/light_shufflenet.onnx"

Array = npt.NDArray[Any]


def shared(name: str) -> Path:
    """The shared model ``name``, or skip the test."""
    path = DATA / name
    if not path.exists():
        pytest.skip(f"shared model {name} is not here")
    return path


def latest_first(graph: Graph) -> list[int]:
    """A topological order that always runs the ready op that the file lists last."""
    waiting = [len(before) for before in graph.predecessors]
    ready = [-op for op, count in enumerate(waiting) if count == 0]
    heapq.heapify(ready)
    order = []
    while ready:
        op = -heapq.heappop(ready)
        order.append(op)
        for after in graph.successors[op]:
            waiting[after] -= 1
            if waiting[after] == 0:
                heapq.heappush(ready, -after)
    return order


def random_input(shape: Sequence[int], dtype: str, seed: int = 0) -> Array:
    """Values over the whole range of an integer type, or from -1 to 1."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        info = np.iinfo(kind)
        return rng.integers(info.min, info.max, shape, kind, endpoint=True)
    return rng.uniform(-1, 1, shape).astype(kind)


@dataclass(frozen=True)
class TfliteTensor:
    """A tensor of a made-up ``.tflite`` file."""

    name: str
    shape: tuple[int, ...] = (1, 4)
    type: int = 0
    data: bytes = b""
    variable: bool = False
    signature: tuple[int, ...] = ()


@dataclass(frozen=True)
class TfliteOp:
    """An operator of a made-up file: builtin code, inputs and outputs, VAR_HANDLE's name."""

    code: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    handle: str = ""


RELU, LOGISTIC, ADD, CALL_ONCE, VAR_HANDLE, READ, ASSIGN = 19, 14, 0, 129, 142, 143, 144


def tflite_model(
    tensors: Sequence[TfliteTensor],
    ops: Sequence[TfliteOp],
    inputs: Sequence[int],
    outputs: Sequence[int],
    metadata: str = "",
) -> bytes:
    """The bytes of a ``.tflite`` file of one subgraph."""
    flatbuffers = pytest.importorskip("flatbuffers")
    schema = pytest.importorskip("ai_edge_litert.schema_py_generated")
    model = schema.ModelT()
    model.version = 3
    model.buffers = [schema.BufferT()]
    model.operatorCodes = []
    graph = schema.SubGraphT()
    graph.tensors, graph.operators = [], []
    graph.inputs, graph.outputs = list(inputs), list(outputs)
    for tensor in tensors:
        made = schema.TensorT()
        made.name, made.shape, made.type = tensor.name, list(tensor.shape), tensor.type
        made.isVariable = tensor.variable
        made.shapeSignature = list(tensor.signature) or None
        if tensor.data:
            made.buffer = len(model.buffers)
            model.buffers.append(_buffer(schema, tensor.data))
        graph.tensors.append(made)
    for op in ops:
        code, table = schema.OperatorCodeT(), schema.OperatorT()
        code.builtinCode, code.deprecatedBuiltinCode = op.code, min(op.code, 127)
        code.version = 1
        table.opcodeIndex = len(model.operatorCodes)
        model.operatorCodes.append(code)
        table.inputs, table.outputs = list(op.inputs), list(op.outputs)
        if op.handle:
            table.builtinOptionsType = schema.BuiltinOptions.VarHandleOptions
            table.builtinOptions = schema.VarHandleOptionsT()
            table.builtinOptions.sharedName = op.handle
        graph.operators.append(table)
    model.subgraphs = [graph]
    if metadata:
        entry = schema.MetadataT()
        entry.name, entry.buffer = metadata, len(model.buffers)
        model.buffers.append(_buffer(schema, b"\0" * 8))
        model.metadata = [entry]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _buffer(schema: Any, data: bytes) -> Any:
    buffer = schema.BufferT()
    buffer.data = np.frombuffer(data, np.uint8)
    return buffer


def small_tflite(metadata: str = "") -> bytes:
    """X -> (relu, logistic) -> add with a constant -> add: two orders are valid."""
    weights = np.arange(4, dtype=np.float32).tobytes()
    tensors = [TfliteTensor(name) for name in ("x", "a", "b", "c", "y")]
    tensors.append(TfliteTensor("w", data=weights))
    ops = [
        TfliteOp(RELU, (0,), (1,)),
        TfliteOp(LOGISTIC, (0,), (2,)),
        TfliteOp(ADD, (2, 5), (3,)),
        TfliteOp(ADD, (1, 3), (4,)),
    ]
    return tflite_model(tensors, ops, (0,), (4,), metadata)
