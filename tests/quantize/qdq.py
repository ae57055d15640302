"""Made-up ONNX models of one operator between DequantizeLinear and QuantizeLinear."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.conformance.writer import Array

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

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


@dataclass
class _Graph:
    nodes: list[Any]
    constants: list[Any]
    inputs: list[Any]

    def constant(self, name: str, value: Any) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def real(self, name: str, tensor: Q) -> str:
        """The name of what an operand is in real numbers."""
        if tensor.data is None:
            kind = helper.np_dtype_to_tensor_dtype(np.dtype(tensor.dtype))
            self.inputs.append(helper.make_tensor_value_info(name, kind, tensor.shape))
        else:
            self.constant(name, np.asarray(tensor.data, tensor.dtype).reshape(tensor.shape))
        params = self.params(name, tensor)
        axis = {} if np.ndim(tensor.scale) == 0 else {"axis": tensor.axis}
        self.nodes.append(
            helper.make_node("DequantizeLinear", [name, *params], [f"{name}_real"], **axis)
        )
        return f"{name}_real"

    def params(self, name: str, tensor: Q) -> tuple[str, str]:
        scale = np.asarray(tensor.scale, np.float32)
        zero = np.full(scale.shape, tensor.zero, tensor.dtype)
        return self.constant(f"{name}_scale", scale), self.constant(f"{name}_zero", zero)


def operator(
    kind: str,
    operands: Sequence[Q | Array],
    result: Q,
    attributes: Mapping[str, Any] | None = None,
    activation: Sequence[Any] = (),
) -> bytes:
    """Return a model of one operator.

    Operands that are arrays are constants as they are. ``activation``: a kind and its further
    operands, between the operator and its result.
    """
    graph = _Graph([], [], [])
    names = [
        graph.real(f"x{i}", operand) if isinstance(operand, Q) else graph.constant(f"x{i}", operand)
        for i, operand in enumerate(operands)
    ]
    graph.nodes.append(helper.make_node(kind, names, ["made"], **(attributes or {})))
    last = "made"
    if activation:
        further = [graph.constant(f"a{i}", np.float32(v)) for i, v in enumerate(activation[1:])]
        graph.nodes.append(helper.make_node(activation[0], [last, *further], ["active"]))
        last = "active"
    params = graph.params("y", result)
    graph.nodes.append(helper.make_node("QuantizeLinear", [last, *params], ["y"]))
    made = helper.make_tensor_value_info(
        "y", helper.np_dtype_to_tensor_dtype(np.dtype(result.dtype)), result.shape
    )
    whole = helper.make_graph(graph.nodes, kind, graph.inputs, [made], graph.constants)
    model = helper.make_model(whole, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString())


__all__ = ["OPSET", "Q", "TensorProto", "operator"]
