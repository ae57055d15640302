"""float16 ONNX models, computed in float32: inputs are widened, outputs rounded.

Runtimes without float16 kernels, such as onnxruntime on a CPU, compute node by node in float32 and
round each value in between: results differ by a few steps (``docs/validation.md``). Constants
become float32.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tvm_serenity.errors import UnsupportedError

if TYPE_CHECKING:
    import onnx

_SUFFIX = ".float32"
"""The suffix of widened inputs, and of outputs before rounding."""

_TYPES = ("to", "dtype", "output_dtype", "softmax_precision", "stash_type")
"""Attributes that name a type."""


def widened(model: "onnx.ModelProto") -> None:
    """Change ``model`` so that no operator computes in float16.

    Raises :class:`UnsupportedError` for float16 in branches or loop bodies.
    """
    graph = model.graph
    if not any(_halves(graph)):
        return
    if model.functions:
        raise UnsupportedError(
            "float16 in a model with functions of its own is unsupported; export it in float32"
        )
    if any(name.endswith(_SUFFIX) for node in graph.node for name in (*node.input, *node.output)):
        raise UnsupportedError(
            f"float16 in a model with names that end in {_SUFFIX}; export it in float32"
        )
    first, last = _read_in(graph), _written_out(graph)
    for node in graph.node:
        _widen_attributes(node)
    nodes = [*first, *graph.node, *last]
    del graph.node[:]
    graph.node.extend(nodes)
    kept = [v for v in graph.value_info if not _is_half(v)]
    del graph.value_info[:]
    graph.value_info.extend(kept)


def _halves(graph: "onnx.GraphProto") -> Iterator[bool]:
    """Yield, for each input, constant and conversion of a graph, whether it is float16."""
    from onnx import TensorProto

    half = TensorProto.FLOAT16
    yield from (_is_half(value) for value in (*graph.input, *graph.output))
    yield from (tensor.data_type == half for tensor in graph.initializer)
    for node in graph.node:
        for attribute in node.attribute:
            yield attribute.t.data_type == half
            yield attribute.name in _TYPES and attribute.i == half


def _is_half(value: "onnx.ValueInfoProto") -> bool:
    from onnx import TensorProto

    return bool(value.type.tensor_type.elem_type == TensorProto.FLOAT16)


def _cast(source: str, target: str, to: int) -> Any:
    from onnx import helper

    return helper.make_node("Cast", [source], [target], name=target, to=to)


def _read_in(graph: "onnx.GraphProto") -> list[Any]:
    """Widen the constants; return the nodes that widen the inputs."""
    from onnx import TensorProto

    held = {tensor.name for tensor in graph.initializer}
    names = [v.name for v in graph.input if _is_half(v) and v.name not in held]
    for tensor in graph.initializer:
        if tensor.data_type == TensorProto.FLOAT16:
            _widen(tensor)
    if any(value.name in held and _is_half(value) for value in graph.output):
        raise UnsupportedError(
            "a float16 constant as a result is unsupported; export the model in float32"
        )
    for value in graph.input:
        if value.name in held and _is_half(value):
            value.type.tensor_type.elem_type = TensorProto.FLOAT
    for name in names:
        _rename(graph, name)
    return [_cast(name, name + _SUFFIX, TensorProto.FLOAT) for name in names]


def _written_out(graph: "onnx.GraphProto") -> list[Any]:
    """Return the nodes that round the outputs, whose unrounded values get other names."""
    from onnx import TensorProto

    inputs = {v.name for v in graph.input} | {t.name for t in graph.initializer}
    names = [v.name for v in graph.output if _is_half(v) and v.name not in inputs]
    for name in names:
        _rename(graph, name)
    return [_cast(name + _SUFFIX, name, TensorProto.FLOAT16) for name in names]


def _rename(graph: "onnx.GraphProto", name: str) -> None:
    for node in graph.node:
        for held in (node.input, node.output):
            for index, own in enumerate(held):
                if own == name:
                    held[index] = name + _SUFFIX


def _widen_attributes(node: "onnx.NodeProto") -> None:
    from onnx import TensorProto

    made = next(iter(node.output), "")
    if node.op_type == "BitCast":
        raise UnsupportedError(
            f"operator BitCast (output {made!r}): its model computes in float16; export the model "
            "in float32"
        )
    for attribute in node.attribute:
        if attribute.HasField("g") or attribute.graphs:
            raise UnsupportedError(
                f"operator {node.op_type} (output {made!r}): it runs subgraphs in a "
                "float16 model; export the model in float32"
            )
        if attribute.HasField("t") and attribute.t.data_type == TensorProto.FLOAT16:
            _widen(attribute.t)
        if attribute.name in _TYPES and attribute.i == TensorProto.FLOAT16:
            attribute.i = TensorProto.FLOAT


def _widen(tensor: "onnx.TensorProto") -> None:
    import numpy as np
    from onnx import numpy_helper

    values = numpy_helper.to_array(tensor).astype(np.float32)
    tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
