"""Models in onnxruntime's form QOperator: integers, at most a step from onnxruntime's result."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.quantize.running import Machine
from tests.quantize.runtime import session
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.frontends import load
from tvm_serenity.frontends.relax import to_relax
from tvm_serenity.relax.quantize import kept_float, quantized_module

onnx = pytest.importorskip("onnx")
quantization = pytest.importorskip("onnxruntime.quantization")

TYPES = {"uint8": quantization.QuantType.QUInt8, "int8": quantization.QuantType.QInt8}


def network(seed: int, opset: int) -> Any:
    """A small network of what onnxruntime quantises in this form."""
    rng = np.random.default_rng(seed)
    helper, numpy_helper = onnx.helper, onnx.numpy_helper

    def stored(name: str, *shape: int) -> Any:
        values = rng.normal(0, 0.4, shape).astype(np.float32)
        return numpy_helper.from_array(values, name)

    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w0", "b0"], ["c0"], pads=[1, 1, 1, 1]),
        node("Relu", ["c0"], ["r0"]),
        node("Conv", ["r0", "w1"], ["c1"], pads=[1, 1, 1, 1], group=8),
        node("Sigmoid", ["c1"], ["s1"]),
        node("Mul", ["c1", "s1"], ["m1"]),
        node("Add", ["m1", "r0"], ["a1"]),
        node("LeakyRelu", ["a1"], ["l1"], alpha=0.1),
        node("Concat", ["l1", "r0"], ["k1"], axis=1),
        node("AveragePool", ["k1"], ["p1"], kernel_shape=[2, 2], strides=[2, 2]),
        node("GlobalAveragePool", ["p1"], ["g1"]),
        node("Flatten", ["g1"], ["f1"]),
        node("MatMul", ["f1", "w2"], ["y"]),
    ]
    weights = [stored("w0", 8, 3, 3, 3), stored("b0", 8), stored("w1", 8, 1, 3, 3)]
    weights.append(stored("w2", 16, 5))
    value, kind = helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes, "net", [value("x", kind, [1, 3, 8, 8])], [value("y", kind, [1, 5])], weights
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def quantised(folder: Path, seed: int, dtype: str, channels: bool, opset: int = 13) -> Path:
    """The network in the form QOperator, as a file."""
    source, made = folder / "float.onnx", folder / "made.onnx"
    onnx.save(network(seed, opset), source)
    rng = np.random.default_rng(seed)
    images = iter([{"x": rng.normal(0, 1, (1, 3, 8, 8)).astype(np.float32)} for _ in range(4)])

    class Calibration(quantization.CalibrationDataReader):  # type: ignore[misc, name-defined]
        def get_next(self) -> Any:
            return next(images, None)

    quantization.quantize_static(
        source,
        made,
        Calibration(),
        quant_format=quantization.QuantFormat.QOperator,
        per_channel=channels,
        activation_type=TYPES[dtype],
        weight_type=quantization.QuantType.QInt8,
    )
    return made


@pytest.mark.parametrize(
    ("seed", "dtype", "channels", "opset"),
    [(0, "uint8", False, 13), (1, "int8", True, 13), (2, "uint8", True, 11)],
)
def test_a_network_in_integers_is_a_step_from_onnxruntime(
    seed: int, dtype: str, channels: bool, opset: int, tmp_path: Path
) -> None:
    """Scales of channels are there in opset 11 too, where DequantizeLinear has none."""
    path = quantised(tmp_path, seed, dtype, channels, opset)
    kinds = {op.kind for op in load(path).graph.ops}
    assert {"QLinearConv", "com.microsoft.QLinearAdd", "com.microsoft.QLinearConcat"} <= kinds
    module = to_relax(path)
    made = quantized_module(module, rounding="float")
    assert not kept_float(made)
    machine = Machine(made)
    runtime = session(path, widened=dtype == "uint8")
    stored = {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer}
    scale = float(next(v for n, v in stored.items() if n.startswith("y") and "scale" in n))
    rng = np.random.default_rng(seed + 100)
    for _ in range(6):
        image = rng.normal(0, 1, (1, 3, 8, 8)).astype(np.float32)
        (expected,) = runtime.run(None, {"x": image})
        (found,) = machine.run([image])
        assert np.abs(found - expected).max() <= 2.01 * scale


def test_a_bias_of_unknown_scale_is_refused(tmp_path: Path) -> None:
    path = quantised(tmp_path, 3, "uint8", False)
    model = onnx.load(path)
    conv = next(n for n in model.graph.node if n.op_type == "QLinearConv")
    scale = onnx.helper.make_tensor_value_info(conv.input[1], onnx.TensorProto.FLOAT, [])
    kept = [t for t in model.graph.initializer if t.name != conv.input[1]]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    model.graph.input.append(scale)
    onnx.save(model, path)
    with pytest.raises(UnsupportedError, match=r"QLinearConv .* must be a constant"):
        load(path)
