"""Networks as ONNX files, written node by node: what orders tell apart, and chains of one kind."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tvm_serenity.zoo.wiring import Wiring


class Writer:
    """Collects the nodes and the weights of a network."""

    def __init__(self, seed: int = 0) -> None:
        self.nodes: list[Any] = []
        self.stored: list[Any] = []
        self.rng = np.random.default_rng(seed)

    def op(self, kind: str, *given: str, **attributes: Any) -> str:
        made = f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(given), [made], name=made, **attributes))
        return made

    def const(self, array: Any) -> str:
        name = f"c{len(self.stored)}"
        self.stored.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def conv(self, x: str, given: int, made: int, kernel: int = 1, **attributes: Any) -> str:
        group = attributes.get("group", 1)
        half = (3 / (given // group * kernel**2)) ** 0.5
        weight = self.rng.uniform(-half, half, (made, given // group, kernel, kernel))
        pads = [kernel // 2] * 4
        return self.op("Conv", x, self.const(np.float32(weight)), pads=pads, **attributes)

    def save(self, path: Path, shape: Sequence[int | str], made: str, opset: int = 17) -> Path:
        self.nodes.append(helper.make_node("Identity", [made], ["y"], name="y"))
        graph = helper.make_graph(
            self.nodes,
            "net",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(shape))],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            self.stored,
        )
        versions = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=versions, ir_version=9)
        onnx.save(onnx.shape_inference.infer_shapes(model), path)
        return path


def wired(path: Path, channels: int = 16, size: int = 64, seed: int = 1, **graph: Any) -> Path:
    """A stage wired at random: sums, relu, separable convolution."""
    net = Writer(seed)
    outs: list[str] = []
    wiring = Wiring(**graph).predecessors(seed)
    for reads in wiring:
        x = outs[reads[0]] if reads else "x"
        for other in reads[1:]:
            x = net.op("Add", x, outs[other])
        x = net.conv(net.op("Relu", x), channels, channels, 3, group=channels)
        outs.append(net.conv(x, channels, channels))
    inner = {node for reads in wiring for node in reads}
    ends = [out for index, out in enumerate(outs) if index not in inner]
    return net.save(path, [1, channels, size, size], net.op("GlobalAveragePool", _sum(net, ends)))


def branches(path: Path, channels: int = 16, size: int = 64, cells: int = 3) -> Path:
    """Cells of four branches that widen, told first together and then narrowed, one by one."""
    net = Writer()
    x = "x"
    for _ in range(cells):
        wide = [net.op("Relu", net.conv(x, channels, 4 * channels)) for _ in range(4)]
        x = net.op("Concat", *(net.conv(w, 4 * channels, channels // 4) for w in wide), axis=1)
    return net.save(path, [1, channels, size, size], net.op("GlobalAveragePool", x))


def _sum(net: Writer, ends: Sequence[str]) -> str:
    return net.op("Sum", *ends) if len(ends) > 1 else ends[0]


def mixed(path: Path) -> Path:
    """What both levels of optimisation fuse or lay out anew, with sizes that padding changes."""
    net = Writer()
    x = net.op("Relu", net.conv("x", 3, 24, 3, strides=[2, 2]))
    x = net.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    y = net.op("Relu", net.conv(x, 24, 24, 3, group=24))
    x = net.op("Relu", net.op("Add", net.conv(y, 24, 24), x))
    x = net.op("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])
    z = net.op("LeakyRelu", net.conv(x, 24, 40), alpha=0.1)
    scales = net.const(np.asarray([1, 1, 2, 2], np.float32))
    z = net.op("Resize", z, "", scales, mode="nearest", coordinate_transformation_mode="asymmetric")
    z = net.conv(z, 40, 12)
    flat = net.op("Flatten", net.op("GlobalAveragePool", z))
    weight = net.const(np.float32(net.rng.uniform(-1, 1, (12, 20))))
    bias = net.const(np.float32(net.rng.uniform(-1, 1, 20)))
    dense = net.op("Relu", net.op("Gemm", flat, weight, bias))
    other = net.const(np.float32(net.rng.uniform(-1, 1, (30, 20))))
    made = net.op("MatMul", dense, net.op("Transpose", other, perm=[1, 0]))
    return net.save(path, [1, 3, 64, 64], net.op("Gelu", made, domain="com.microsoft"))


def chain(path: Path, kind: str, *more: Any, elements: int = 1 << 20) -> Path:
    """``kind`` four times, one after the other, on a value of ``elements`` that is no input."""
    net = Writer()
    x = net.op("Abs", "x")
    for _ in range(4):
        x = net.op(kind, x, *(net.const(array) for array in more))
    return net.save(path, [1, elements], net.op("ReduceMax", x, keepdims=0))
