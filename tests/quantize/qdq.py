"""Made-up ONNX models of operators between DequantizeLinear and QuantizeLinear."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from tests.conformance.writer import Array

onnx = pytest.importorskip("onnx")
from onnx import helper, numpy_helper  # noqa: E402

OPSET = 21


@dataclass(frozen=True, eq=False)
class Q:
    """A stored tensor; ``data`` of a constant. Scales of channels lie along ``axis``.

    ``fake``: a constant that the model stores as floats, and quantises itself.
    """

    shape: tuple[int, ...]
    dtype: str
    scale: float | Sequence[float]
    zero: int = 0
    data: Array | None = None
    axis: int = 0
    fake: bool = False


@dataclass(frozen=True, eq=False)
class Region:
    """An operator between what is stored.

    Operands that are arrays are constants as they are. ``activation``: a kind and its further
    operands, between the operator and its result. ``more``: results after the first.
    """

    kind: str
    operands: Sequence[Q | Array]
    result: Q
    attributes: Mapping[str, Any] = field(default_factory=dict)
    activation: Sequence[Any] = ()
    more: Sequence[Q] = ()

    @property
    def results(self) -> tuple[Q, ...]:
        return (self.result, *self.more)


def network(regions: Sequence[Region]) -> bytes:
    """Return a model of regions beside each other, each with inputs and outputs of its own."""
    graph = _Graph([], [], [], [])
    for index, region in enumerate(regions):
        graph.add(region, f"r{index}_")
        graph.end(region.results)
        graph.names, graph.reals = {}, {}
    return graph.model()


def joined(regions: Sequence[Region], ends: Sequence[Q]) -> bytes:
    """Return a model whose regions read each other's results by the same ``Q``.

    Its inputs are the operands that no region makes, its outputs are ``ends``.
    """
    graph = _Graph([], [], [], [])
    for index, region in enumerate(regions):
        graph.add(region, f"r{index}_")
    graph.end(ends)
    return graph.model()


def unstored(region: Region) -> bytes:
    """Return a model of a region whose outputs are its results before they are stored."""
    graph = _Graph([], [], [], [])
    graph.add(region, "")
    graph.real(region)
    return graph.model(checked=False)


@dataclass
class _Graph:
    nodes: list[Any]
    constants: list[Any]
    inputs: list[Any]
    outputs: list[Any]
    names: dict[Q, str] = field(default_factory=dict)
    """Of what is stored."""
    reals: dict[Q, str] = field(default_factory=dict)
    """Of what is stored, in real numbers."""
    made: dict[Q, str] = field(default_factory=dict)
    """Of what an operator makes, before it is stored."""

    def add(self, region: Region, prefix: str) -> None:
        names = [
            self._real(f"{prefix}x{i}", operand)
            if isinstance(operand, Q)
            else self._constant(f"{prefix}x{i}", operand)
            for i, operand in enumerate(region.operands)
        ]
        made = [f"{prefix}made{i}" for i in range(len(region.results))]
        self.nodes.append(helper.make_node(region.kind, names, made, **region.attributes))
        if region.activation:
            kind, *further = region.activation
            more = [self._constant(f"{prefix}a{i}", np.float32(v)) for i, v in enumerate(further)]
            made = [self._node(kind, [made[0], *more], f"{prefix}active")]
        for index, (real, result) in enumerate(zip(made, region.results, strict=True)):
            name = self.names[result] = f"{prefix}y{index}"
            self.made[result] = real
            self._node("QuantizeLinear", [real, *self._params(name, result)], name)

    def real(self, region: Region) -> None:
        """Make the results, in real numbers and of any shape, outputs."""
        for tensor in region.results:
            real = self.made[tensor]
            self.outputs.append(helper.make_tensor_value_info(real, kind_of("float"), None))

    def end(self, results: Sequence[Q]) -> None:
        self.outputs.extend(self.value(self.names[tensor], tensor) for tensor in results)

    def model(self, checked: bool = True) -> bytes:
        parts = (self.nodes, "regions", self.inputs, self.outputs, self.constants)
        opsets = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(helper.make_graph(*parts), opset_imports=opsets, ir_version=10)
        if checked:
            onnx.checker.check_model(model, full_check=True)
        return bytes(model.SerializeToString())

    def _node(self, kind: str, names: Sequence[str], result: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, names, [result], **attributes))
        return result

    def _constant(self, name: str, value: Any) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def _real(self, name: str, tensor: Q) -> str:
        """The name of what an operand is in real numbers."""
        if tensor in self.reals:
            return self.reals[tensor]
        if tensor in self.names:
            name = self.names[tensor]
        elif tensor.data is None:
            self.names[tensor] = name
            self.inputs.append(self.value(name, tensor))
        elif tensor.fake:
            self._quantised(name, tensor)
        else:
            data = np.asarray(tensor.data).reshape(tensor.shape)
            self._stored(name, data, tensor.dtype)
        axis = {} if np.ndim(tensor.scale) == 0 else {"axis": tensor.axis}
        self.reals[tensor] = f"{name}_real"
        return self._node(
            "DequantizeLinear", [name, *self._params(name, tensor)], f"{name}_real", **axis
        )

    def _quantised(self, name: str, tensor: Q) -> None:
        """Write floats, not all of them on a step, and the operator that quantises them."""
        scale, axis = np.asarray(tensor.scale, np.float32), {}
        if scale.ndim:
            axis = {"axis": tensor.axis}
            scale = scale.reshape([-1 if i == tensor.axis else 1 for i in range(len(tensor.shape))])
        steps = np.asarray(tensor.data).reshape(tensor.shape) - tensor.zero
        off = np.sin(np.arange(steps.size)).reshape(tensor.shape) * 0.4
        self._constant(f"{name}_float", ((steps + off) * scale).astype(np.float32))
        given = [f"{name}_float", *self._params(name, tensor)]
        self._node("QuantizeLinear", given, name, **axis)

    def _params(self, name: str, tensor: Q) -> tuple[str, str]:
        """The names of its scale and its zero point."""
        names = (f"{name}_scale", f"{name}_zero")
        if names[0] not in {held.name for held in self.constants}:
            scale = np.asarray(tensor.scale, np.float32)
            self._constant(names[0], scale)
            self._stored(names[1], np.full(scale.shape, tensor.zero), tensor.dtype)
        return names

    def _stored(self, name: str, data: Array, dtype: str) -> None:
        values = data.ravel().tolist()
        self.constants.append(helper.make_tensor(name, kind_of(dtype), data.shape, values))

    def value(self, name: str, tensor: Q) -> Any:
        return helper.make_tensor_value_info(name, kind_of(tensor.dtype), tensor.shape)


def kind_of(dtype: str) -> int:
    """The number that ONNX gives a type."""
    return int(onnx.TensorProto.DataType.Value(dtype.upper()))
