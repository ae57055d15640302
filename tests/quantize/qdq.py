"""Made-up ONNX models of operators between DequantizeLinear and QuantizeLinear."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from tests.conformance.writer import Array

onnx = pytest.importorskip("onnx")
from onnx import helper, numpy_helper  # noqa: E402

OPSET = 18


@dataclass(frozen=True, eq=False)
class Q:
    """A stored tensor; ``data`` of a constant. Scales of channels lie along ``axis``."""

    shape: tuple[int, ...]
    dtype: str
    scale: float | Sequence[float]
    zero: int = 0
    data: Array | None = None
    axis: int = 0


@dataclass(frozen=True, eq=False)
class Region:
    """An operator between what is stored.

    Operands that are arrays are constants as they are. ``activation``: a kind and its further
    operands, between the operator and its result.
    """

    kind: str
    operands: Sequence[Q | Array]
    result: Q
    attributes: Mapping[str, Any] = field(default_factory=dict)
    activation: Sequence[Any] = ()


def network(regions: Sequence[Region]) -> bytes:
    """Return a model of regions beside each other, each with inputs and one output of its own."""
    graph = _Graph([], [], [], [])
    for index, region in enumerate(regions):
        graph.add(region, f"r{index}_")
    whole = helper.make_graph(graph.nodes, "regions", graph.inputs, graph.outputs, graph.constants)
    model = helper.make_model(whole, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString())


@dataclass
class _Graph:
    nodes: list[Any]
    constants: list[Any]
    inputs: list[Any]
    outputs: list[Any]

    def add(self, region: Region, prefix: str) -> None:
        names = [
            self._real(f"{prefix}x{i}", operand)
            if isinstance(operand, Q)
            else self._constant(f"{prefix}x{i}", operand)
            for i, operand in enumerate(region.operands)
        ]
        last = self._node(region.kind, names, f"{prefix}made", **region.attributes)
        if region.activation:
            kind, *further = region.activation
            more = [self._constant(f"{prefix}a{i}", np.float32(v)) for i, v in enumerate(further)]
            last = self._node(kind, [last, *more], f"{prefix}active")
        name = f"{prefix}y"
        self._node("QuantizeLinear", [last, *self._params(name, region.result)], name)
        self.outputs.append(self._value(name, region.result))

    def _node(self, kind: str, names: Sequence[str], result: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, names, [result], **attributes))
        return result

    def _constant(self, name: str, value: Any) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def _real(self, name: str, tensor: Q) -> str:
        """The name of what an operand is in real numbers."""
        if tensor.data is None:
            self.inputs.append(self._value(name, tensor))
        else:
            self._constant(name, np.asarray(tensor.data, tensor.dtype).reshape(tensor.shape))
        axis = {} if np.ndim(tensor.scale) == 0 else {"axis": tensor.axis}
        names = [name, *self._params(name, tensor)]
        return self._node("DequantizeLinear", names, f"{name}_real", **axis)

    def _params(self, name: str, tensor: Q) -> tuple[str, str]:
        scale = np.asarray(tensor.scale, np.float32)
        zero = np.full(scale.shape, tensor.zero, tensor.dtype)
        return self._constant(f"{name}_scale", scale), self._constant(f"{name}_zero", zero)

    def _value(self, name: str, tensor: Q) -> Any:
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(tensor.dtype))
        return helper.make_tensor_value_info(name, kind, tensor.shape)
