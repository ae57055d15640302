"""Weights that a model stores as floats and quantises itself become integer kernels."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("tvm")
from onnx import TensorProto, helper, numpy_helper

from tests.cases import sampled
from tests.frontends.onnx_running import both
from tvm_serenity.frontends.relax import to_relax
from tvm_serenity.relax.quantize import kept_float, quantized_module

CASES = [
    (layer, before, after, dtype, channels)
    for layer in ("Conv", "ConvTranspose", "Gemm", "MatMul")
    for before in ("", "Mul", "Quantised")
    for after in ("", "Clip", "Transpose")
    for dtype in ("int8", "uint8")
    for channels in (False, True)
]
"""``before`` and ``after``: what is computed of the floats, and of the integers."""


class Net:
    """A model while it is written."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.stored: dict[str, Any] = {}

    def add(self, kind: str, given: list[str], made: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, given, [made], **attributes))
        return made

    def hold(self, **values: Any) -> list[str]:
        self.stored.update(values)
        return list(values)

    def save(self, path: Path, given: list[int], made: list[int]) -> Path:
        ends = (("x", given), ("y", made))
        values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in ends]
        held = [numpy_helper.from_array(np.asarray(v), n) for n, v in self.stored.items()]
        graph = helper.make_graph(self.nodes, "fake", values[:1], values[1:], held)
        opset = [helper.make_opsetid("", 17)]
        made_model = helper.make_model(graph, opset_imports=opset, ir_version=8)
        path.write_bytes(made_model.SerializeToString())
        return path


def weight(net: Net, shape: tuple[int, ...], axis: int, case: Any, rng: Any) -> str:
    """Write a fake-quantised weight; return the name of its real numbers."""
    _, before, after, dtype, channels = case
    values = rng.normal(0, 0.3, shape).astype(np.float32)
    far = np.abs(values).max(tuple(i for i in range(len(shape)) if i != axis))
    scales = (far if channels else far.max()).astype(np.float32) / np.float32(110)
    zeros = np.full(scales.shape, {"int8": 0, "uint8": 128}[dtype], dtype)
    w, scale, zero, twice = net.hold(w=values, ws=scales, wz=zeros, w2=np.float32(2))
    along: dict[str, Any] = {"axis": axis} if channels else {}
    if before == "Mul":  # some of it is beyond the limits then
        w = net.add("Mul", [w, twice], "w:twice")
    if before == "Quantised":
        stored = net.add("QuantizeLinear", [w, scale, zero], "w:first", **along)
        w = net.add("DequantizeLinear", [stored, scale, zero], "w:again", **along)
    made = net.add("QuantizeLinear", [w, scale, zero], "w:stored", **along)
    if after == "Clip":
        low, high = net.hold(
            wl=np.asarray(int(zeros.flat[0]) - 7, dtype),
            wh=np.asarray(int(zeros.flat[0]) + 7, dtype),
        )
        made = net.add("Clip", [made, low, high], "w:narrow")
    if after == "Transpose":
        turned = [*range(1, len(shape)), 0]
        made = net.add("Transpose", [made], "w:turned", perm=turned)
        along = {"axis": turned.index(axis)} if channels else {}
    real = net.add("DequantizeLinear", [made, scale, zero], "w:real", **along)
    if after == "Transpose":
        back = [len(shape) - 1, *range(len(shape) - 1)]
        real = net.add("Transpose", [real], "w:back", perm=back)
    return real


def network(case: Any, path: Path) -> Path:
    net, rng = Net(), np.random.default_rng(CASES.index(case))
    step, zero, end, last = net.hold(
        xs=np.float32(0.04), xz=np.int8(3), ys=np.float32(0.06), yz=np.int8(-3)
    )
    image = case[0].startswith("Conv")
    given = [1, 4, 6, 6] if image else [2, 16]
    (bias,) = net.hold(b=rng.normal(0, 0.3, 6).astype(np.float32))
    x = net.add("QuantizeLinear", ["x", step, zero], "x:stored")
    x = net.add("DequantizeLinear", [x, step, zero], "x:real")
    if case[0] == "Gemm":
        y = net.add("Gemm", [x, weight(net, (6, 16), 0, case, rng), bias], "sum", transB=1)
    elif case[0] == "MatMul":
        real = weight(net, (6, 16), 0, case, rng)
        turned = net.add("Transpose", [real], "w:columns", perm=[1, 0])
        y = net.add("Add", [net.add("MatMul", [x, turned], "product"), bias], "sum")
    else:
        shape, axis = ((6, 4, 3, 3), 0) if case[0] == "Conv" else ((4, 6, 3, 3), 1)
        y = net.add(case[0], [x, weight(net, shape, axis, case, rng), bias], "sum", pads=[1] * 4)
    y = net.add("QuantizeLinear", [y, end, last], "y:stored")
    net.add("DequantizeLinear", [y, end, last], "y")
    return net.save(path, given, [1, 6, 6, 6] if image else [2, 6])


@pytest.mark.parametrize("case", sampled(CASES, 16, tuples=True), ids=str)
def test_fake_quantised_weights_are_integers(case: Any, tmp_path: Path) -> None:
    path = network(case, tmp_path / "fake.onnx")
    mod = to_relax(path)
    assert kept_float(quantized_module(mod, "float")) == ()
    x = np.random.default_rng(1).uniform(-5, 5, (1, 4, 6, 6) if "Conv" in case[0] else (2, 16))
    ((ours, theirs),) = both(path, [x.astype(np.float32)])
    assert np.abs(theirs).max() > 0.5
    assert np.abs(ours - theirs).max() <= 0.06 * 1.01  # one step
