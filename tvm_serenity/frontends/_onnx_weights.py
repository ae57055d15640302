"""Constants that an ONNX model quantises at run time, stored as integers instead.

Exporters of fake-quantised networks keep weights in float and write QuantizeLinear before the
DequantizeLinear that each operator reads. Computations on constants before QuantizeLinear, and
between the two (a Clip to fewer bits, a Transpose), are evaluated here once. Other constants stay:
scales and layouts of floats belong to the importer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tvm_serenity.frontends._onnx_fold import FOLDED, reference_results
from tvm_serenity.frontends._onnx_tensors import is_external

if TYPE_CHECKING:
    import onnx

Array = npt.NDArray[Any]

_LIMITS = {
    "UINT8": (0, 255),
    "INT8": (-128, 127),
    "UINT16": (0, 65535),
    "INT16": (-32768, 32767),
    "INT32": (-(2**31), 2**31 - 1),
    "UINT4": (0, 15),
    "INT4": (-8, 7),
}
"""The value range of each quantised type."""


def store_quantised(graph: "onnx.GraphProto", version: int) -> bool:
    """Store quantised constants and their transformations; return whether there were any.

    ``version``: the opset version.
    """
    constants = _Constants.of(graph, version)
    made: dict[str, Array] = {}
    kept = []
    for node in graph.node:
        first = node.op_type == "QuantizeLinear" and node.domain in ("", "ai.onnx")
        after = node.op_type in FOLDED and any(name in made for name in node.input)
        found = constants.results(node) if first or after else None
        if found is None:
            kept.append(type(node).FromString(node.SerializeToString()))
        else:
            made.update(found)
    if not made:
        return False
    read = {name for node in kept for name in node.input} | {o.name for o in graph.output}
    graph.initializer.extend(_tensor(n, value) for n, value in made.items() if n in read)
    del graph.node[:]
    graph.node.extend(kept)
    return True


def _tensor(name: str, value: Array) -> "onnx.TensorProto":
    from onnx import numpy_helper

    return numpy_helper.from_array(np.ascontiguousarray(value).reshape(value.shape), name)


@dataclass
class _Constants:
    """The stored or computed constants of a graph, each computed once."""

    version: int
    held: dict[str, Any]
    makers: dict[str, Any]
    values: dict[str, Array | None] = field(default_factory=dict)

    @staticmethod
    def of(graph: "onnx.GraphProto", version: int) -> "_Constants":
        held = {tensor.name: tensor for tensor in graph.initializer}
        makers = {name: node for node in graph.node for name in node.output if name}
        return _Constants(version, held, makers)

    def value(self, name: str) -> Array | None:
        """Return the value of a tensor, None if it is not constant or cannot be computed."""
        if name not in self.values:
            self.values[name] = None  # the graph is not in topological order
            self.values[name] = self._value(name)
        return self.values[name]

    def _value(self, name: str) -> Array | None:
        from onnx import numpy_helper

        if name in self.held:
            held = self.held[name]
            return None if is_external(held) else np.asarray(numpy_helper.to_array(held))
        found = self.results(self.makers[name]) if name in self.makers else None
        return None if found is None else found.get(name)

    def results(self, node: "onnx.NodeProto") -> dict[str, Array] | None:
        """Return a node's results from constants by name; None if it reads anything else."""
        if node.domain not in ("", "ai.onnx"):
            return None
        given = [self.value(name) if name else None for name in node.input]
        if any(v is None for v, name in zip(given, node.input, strict=True) if name):
            return None
        if node.op_type == "QuantizeLinear":
            found = _quantised(node, given)
        elif node.op_type == "DequantizeLinear":
            found = _dequantised(node, given)
        elif node.op_type in FOLDED and not any(a.HasField("g") for a in node.attribute):
            named = {name: v for name, v in zip(node.input, given, strict=True) if v is not None}
            return reference_results(node, self.version, named)
        else:
            return None
        return None if found is None else {node.output[0]: found}


def _quantised(node: "onnx.NodeProto", given: Sequence[Array | None]) -> Array | None:
    """Return ``round(x / scale) + zero point``, halves to even, clamped to the type."""
    from onnx import TensorProto, helper

    x, scale, zero = (*given, None)[:3]
    asked = {a.name: a.i for a in node.attribute}
    kind = asked.get("output_dtype", 0) or TensorProto.UINT8
    if zero is not None:
        kind = helper.np_dtype_to_tensor_dtype(zero.dtype)
    limits = _LIMITS.get(TensorProto.DataType.Name(kind))
    if limits is None or asked.get("precision", 0) or x is None or scale is None:
        return None
    if x.dtype != np.float32 or scale.dtype != np.float32 or not np.isfinite(x).all():
        return None
    spread = _along(x, scale, asked)
    offset = None if zero is None else _along(x, zero.astype(np.int64), asked)
    if spread is None or (zero is not None and offset is None):
        return None
    with np.errstate(all="ignore"):
        steps = np.rint(x / spread).astype(np.float64) + (0 if offset is None else offset)
    if np.isnan(steps).any():
        return None
    return np.clip(steps, *limits).astype(helper.tensor_dtype_to_np_dtype(kind))


def _dequantised(node: "onnx.NodeProto", given: Sequence[Array | None]) -> Array | None:
    x, scale, zero = (*given, None)[:3]
    asked = {a.name: a.i for a in node.attribute}
    if x is None or scale is None or scale.dtype != np.float32 or asked.get("output_dtype", 0):
        return None
    spread = _along(x, scale, asked)
    offset = None if zero is None else _along(x, zero.astype(np.int64), asked)
    if spread is None or (zero is not None and offset is None):
        return None
    steps = x.astype(np.int64) - (0 if offset is None else offset)
    return steps.astype(np.float32) * spread


def _along(x: Array, values: Array, attributes: dict[str, int]) -> Array | None:
    """Return scales or zero points shaped for broadcasting, None for blocks or a wrong size."""
    if values.size == 1 and not attributes.get("block_size", 0):
        return values.reshape(())
    axis = attributes.get("axis", 1)
    if attributes.get("block_size", 0) or values.ndim != 1 or not -x.ndim <= axis < x.ndim:
        return None
    if values.size != x.shape[axis]:
        return None
    return values.reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])
