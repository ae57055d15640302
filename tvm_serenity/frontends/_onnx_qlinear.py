"""Conversion of quantised ONNX operators to their definition: dequantise, compute, quantise.

These are ``QLinearConv`` and ``QLinearMatMul`` of the standard, and the operators of the domain
``com.microsoft`` that onnxruntime's quantiser writes as QOperator. Named values keep their names.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tvm_serenity.errors import UnsupportedError

if TYPE_CHECKING:
    import onnx

_MICROSOFT = "com.microsoft"
_AXES_SINCE = 13
"""The opset version since which scales may be per channel."""


def expanded(model: "onnx.ModelProto") -> Any:
    """Return ``model`` with quantised operators expanded, or unchanged if it has none."""
    if not any(is_quantised(node) for node in model.graph.node):
        return model
    made = type(model)()
    made.CopyFrom(model)
    writer = _Writer(made)
    for node in model.graph.node:
        writer.node(node)
    del made.graph.node[:]
    made.graph.node.extend(writer.nodes)
    made.graph.initializer.extend(writer.stored)
    return writer.of_its_version(made)


def is_quantised(node: "onnx.NodeProto") -> bool:
    """Return whether an operator is one of those that are converted."""
    kinds = _STANDARD if node.domain in ("", "ai.onnx") else _CONTRIBUTED
    return node.op_type in kinds and node.domain in ("", "ai.onnx", _MICROSOFT)


class _Writer:
    """Collects the nodes of the new graph."""

    def __init__(self, model: "onnx.ModelProto") -> None:
        self.nodes: list[Any] = []
        self.stored: list[Any] = []
        self.held = {tensor.name: tensor for tensor in model.graph.initializer}
        self.axes: dict[str, int] = {}

    def node(self, node: "onnx.NodeProto") -> None:
        """Write a node, or its conversion."""
        if not is_quantised(node):
            self.nodes.append(node)
            return
        {**_STANDARD, **_CONTRIBUTED}[node.op_type](self, node)

    def real(self, node: "onnx.NodeProto", first: int, axis: int | None = None) -> str:
        """Return the real numbers of input ``first``; scale and zero point are the next inputs."""
        value, scale, zero = (*node.input[first : first + 3], "", "")[:3]
        return self.dequantised(node, value, [scale, zero], axis)

    def dequantised(
        self, node: "onnx.NodeProto", value: str, by: Sequence[str], axis: int | None
    ) -> str:
        """Return the real numbers of a value; ``by``: its scale and zero point."""
        made = f"{node.output[0]}:real{len(self.nodes)}"
        self.emit("DequantizeLinear", [value, *(name for name in by if name)], made)
        if axis is not None and self.count(by[0]) > 1:
            self.axes[made] = axis
        return made

    def count(self, name: str) -> int:
        """Return the number of elements of a stored tensor; 1 for any other."""
        tensor = self.held.get(name)
        return 1 if tensor is None else int(np.prod(list(tensor.dims), dtype=np.int64))

    def values(self, node: "onnx.NodeProto", name: str) -> Any:
        """Return a stored tensor as an array."""
        from onnx import numpy_helper

        if name not in self.held:
            kind, made = node.op_type, node.output[0]
            raise UnsupportedError(
                f"operator {kind} (output {made!r}): its scale {name!r} must be a constant"
            )
        return numpy_helper.to_array(self.held[name])

    def bias(self, node: "onnx.NodeProto", name: str, scales: Sequence[str]) -> list[str]:
        """Return the dequantised bias, whose scale is the product of ``scales``, or []."""
        from onnx import numpy_helper

        if not name:
            return []
        scale = np.ones((), np.float32)
        for each in scales:
            scale = np.asarray(scale * self.values(node, each), np.float32)
        stored = f"{node.output[0]}:scale"
        self.stored.append(
            numpy_helper.from_array(scale.reshape(-1 if scale.size > 1 else ()), stored)
        )
        self.held[stored] = self.stored[-1]
        return [self.dequantised(node, name, [stored], 0)]

    def finish(self, node: "onnx.NodeProto", kind: str, given: Sequence[str], first: int) -> None:
        """Write ``kind`` with the attributes of ``node``, and its quantisation.

        The inputs of ``node`` from ``first`` on are the scale and zero point of the result.
        """
        made = f"{node.output[0]}:real"
        self.emit(kind, given, made, node.attribute)
        self.emit("QuantizeLinear", [made, *node.input[first : first + 2]], node.output[0])

    def emit(self, kind: str, given: Sequence[str], made: str, attributes: Any = ()) -> None:
        """Write one node."""
        from onnx import helper

        node = helper.make_node(kind, list(given), [made])
        node.attribute.extend(a for a in attributes if a.name not in _OWN)
        self.nodes.append(node)

    def of_its_version(self, model: "onnx.ModelProto") -> Any:
        """Return ``model`` with channel axes, in an opset version that has them."""
        from onnx import version_converter

        version = next(e.version for e in model.opset_import if e.domain in ("", "ai.onnx"))
        if self.axes and version < _AXES_SINCE:
            try:
                model = version_converter.convert_version(model, _AXES_SINCE)
            except Exception as error:  # the bindings raise any type
                raise UnsupportedError(
                    "the model has per-channel scales before opset 13, and ONNX cannot "
                    f"convert it: {error}"
                ) from None
        for node in model.graph.node:
            if node.output and node.output[0] in self.axes:
                node.attribute.add(name="axis", type=2, i=self.axes[node.output[0]])  # 2: INT
        return model


_OWN = ("channels_last", "opset")
"""Attributes that only the quantised operators have."""


def _conv(writer: _Writer, node: "onnx.NodeProto") -> None:
    weights = writer.real(node, 3, 0)
    bias = node.input[8] if len(node.input) > 8 else ""
    given = [
        writer.real(node, 0),
        weights,
        *writer.bias(node, bias, [node.input[1], node.input[4]]),
    ]
    writer.finish(node, "Conv", given, 6)


def _matmul(writer: _Writer, node: "onnx.NodeProto") -> None:
    writer.finish(node, "MatMul", [writer.real(node, 0), writer.real(node, 3, 1)], 6)


def _gemm(writer: _Writer, node: "onnx.NodeProto") -> None:
    turned = any(a.name == "transB" and a.i for a in node.attribute)
    given = [writer.real(node, 0), writer.real(node, 3, 0 if turned else 1)]
    given += writer.bias(node, node.input[6], [node.input[1], node.input[4]])
    if len(node.input) < 9 or not node.input[7]:
        writer.emit("Gemm", given, node.output[0], node.attribute)
        return
    writer.finish(node, "Gemm", given, 7)


def _pair(kind: str) -> Callable[[_Writer, "onnx.NodeProto"], None]:
    def write(writer: _Writer, node: "onnx.NodeProto") -> None:
        writer.finish(node, kind, [writer.real(node, 0), writer.real(node, 3)], 6)

    return write


def _single(kind: str) -> Callable[[_Writer, "onnx.NodeProto"], None]:
    def write(writer: _Writer, node: "onnx.NodeProto") -> None:
        if any(a.name == "channels_last" and a.i for a in node.attribute):
            raise UnsupportedError(
                f"operator {node.op_type}: channels_last is not supported; export it with "
                "channels first"
            )
        writer.finish(node, kind, [writer.real(node, 0)], 3)

    return write


def _concat(writer: _Writer, node: "onnx.NodeProto") -> None:
    given = [writer.real(node, first) for first in range(2, len(node.input), 3)]
    writer.finish(node, "Concat", given, 0)


def _renamed(writer: _Writer, node: "onnx.NodeProto") -> None:
    """Write the standard operator of that name.

    onnxruntime had 16-bit and 4-bit forms of it before the standard.
    """
    made = node.output[0]
    writer.emit(node.op_type, node.input, made, [a for a in node.attribute if a.name != "axis"])
    if writer.count(node.input[1]) > 1:
        writer.axes[made] = next((int(a.i) for a in node.attribute if a.name == "axis"), 1)


_STANDARD: Mapping[str, Callable[[_Writer, Any], None]] = {
    "QLinearConv": _conv,
    "QLinearMatMul": _matmul,
}
_CONTRIBUTED: Mapping[str, Callable[[_Writer, Any], None]] = {
    "DequantizeLinear": _renamed,
    "QGemm": _gemm,
    "QLinearAdd": _pair("Add"),
    "QLinearAveragePool": _single("AveragePool"),
    "QLinearConcat": _concat,
    "QLinearGlobalAveragePool": _single("GlobalAveragePool"),
    "QLinearLeakyRelu": _single("LeakyRelu"),
    "QLinearMul": _pair("Mul"),
    "QLinearSigmoid": _single("Sigmoid"),
    "QLinearSoftmax": _single("Softmax"),
    "QuantizeLinear": _renamed,
}
"""The conversion of each operator, by kind."""
