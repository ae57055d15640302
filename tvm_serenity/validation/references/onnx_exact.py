"""onnx's reference evaluator in float64: exact integers, nearly exact floats.

It computes node by node in numpy and shares no code with onnxruntime. It decides where the two may
differ: saturating sums of byte products, sums of large numbers that cancel. It is slow.
"""

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tvm_serenity.validation.references.values import Array

if TYPE_CHECKING:
    import onnx

_TYPES = ("to", "dtype", "stash_type")
"""Attributes that name types."""


class OnnxExact:
    """An ``.onnx`` model that onnx's reference evaluator runs in float64.

    ``model``: the bytes of the file; for a model with external data, its path.
    """

    def __init__(self, model: bytes | str, keep: bool) -> None:
        import onnx
        from onnx.reference import ReferenceEvaluator

        del keep
        found = onnx.load(io.BytesIO(model) if isinstance(model, bytes) else model)
        held = {tensor.name for tensor in found.graph.initializer}
        self.inputs = [_entry(v) for v in found.graph.input if v.name not in held]
        self.outputs = [_entry(v) for v in found.graph.output]
        _widen(found.graph)
        self.evaluator = ReferenceEvaluator(found, new_ops=_steps())

    def signature(self) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        """Return ``(name, shape, dtype, 0)`` of each input and output; unknown extents are -1."""
        return self.inputs, self.outputs

    def run(self, inputs: Sequence[Array]) -> tuple[list[Array], dict[int, Array]]:
        """Return the outputs for ``inputs``; float outputs are float64."""
        names = [name for name, *_ in self.inputs]
        wide = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in inputs]
        with np.errstate(all="ignore"):
            found = self.evaluator.run(None, dict(zip(names, wide, strict=True)))
        return [np.asarray(array) for array in found], {}

    step = run


def _steps() -> list[type[Any]]:
    """Return evaluators of QuantizeLinear and DequantizeLinear; onnx has those of opset 19 on."""
    from onnx.reference.op_run import OpRun

    class DequantizeLinear(OpRun):  # type: ignore[misc]
        op_domain = ""

        def _run(self, x: Array, scale: Array, zero: Any = None, **given: Any) -> tuple[Array]:
            scales = _along(scale, x.shape, given)
            zeros = 0.0 if zero is None else _along(zero, x.shape, given).astype(np.float64)
            return ((x.astype(np.float64) - zeros) * scales,)

    class QuantizeLinear(OpRun):  # type: ignore[misc]
        op_domain = ""

        def _run(self, x: Array, scale: Array, zero: Any = None, **given: Any) -> tuple[Array]:
            kind = np.dtype(np.uint8) if zero is None else zero.dtype
            limits = np.iinfo(kind)  # raises for types that numpy lacks
            zeros = 0.0 if zero is None else _along(zero, x.shape, given).astype(np.float64)
            steps = np.rint(x / _along(scale, x.shape, given)) + zeros
            return (np.clip(steps, limits.min, limits.max).astype(kind),)

    return [DequantizeLinear, QuantizeLinear]


def _along(values: Array, shape: tuple[int, ...], given: Mapping[str, Any]) -> Array:
    """Return scales or zero points per element: per tensor, per channel or per block."""
    array, axis = np.asarray(values), given.get("axis")
    axis = 1 if axis is None else int(axis)
    if array.size == 1 and array.ndim <= 1:
        return array.reshape(())
    if array.ndim == len(shape) > 1 or given.get("block_size"):
        return np.repeat(array, -(-shape[axis] // array.shape[axis]), axis)
    return array.reshape([-1 if i == axis % len(shape) else 1 for i in range(len(shape))])


def _entry(value: "onnx.ValueInfoProto") -> tuple[Any, ...]:
    from onnx import helper

    kind = value.type.tensor_type
    shape = tuple(d.dim_value if d.HasField("dim_value") else -1 for d in kind.shape.dim)
    return value.name, shape, helper.tensor_dtype_to_np_dtype(kind.elem_type).name, 0


def _widen(graph: "onnx.GraphProto") -> None:
    """Convert all floats of ``graph`` to double, in its subgraphs too."""
    from onnx import TensorProto

    for values in (graph.input, graph.output, graph.value_info):
        for value in values:
            kind = value.type.tensor_type
            kind.elem_type = _wider(kind.elem_type)
    for tensor in (*graph.initializer, *_constants(graph)):
        _widen_tensor(tensor)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.name in _TYPES and attribute.i in (TensorProto.FLOAT, TensorProto.FLOAT16):
                attribute.i = TensorProto.DOUBLE
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                _widen(inner)


def _constants(graph: "onnx.GraphProto") -> Iterator["onnx.TensorProto"]:
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors


def _wider(kind: int) -> int:
    from onnx import TensorProto

    return int(TensorProto.DOUBLE) if kind in (TensorProto.FLOAT, TensorProto.FLOAT16) else kind


def _widen_tensor(tensor: "onnx.TensorProto") -> None:
    from onnx import numpy_helper

    if _wider(tensor.data_type) != tensor.data_type:
        array = numpy_helper.to_array(tensor).astype(np.float64)
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
