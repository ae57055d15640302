"""QDQ models of ONNX with weights of 4 bits against onnxruntime without optimisations."""

from pathlib import Path

import numpy as np
import pytest

SCALE = 0.05


@pytest.mark.parametrize(("kind", "low", "zero"), [("INT4", -8, 0), ("UINT4", 0, 8)])
def test_weights_of_4_bits_are_within_a_step(
    kind: str, low: int, zero: int, tmp_path: Path
) -> None:
    onnx = pytest.importorskip("onnx")
    ort = pytest.importorskip("onnxruntime")
    import tvm

    from tvm_serenity.frontends.relax import to_relax
    from tvm_serenity.relax.quantize import quantized_module
    from tvm_serenity.runtime.vm import run

    rng, make = np.random.default_rng(0), onnx.helper
    real, four = onnx.TensorProto.FLOAT, onnx.TensorProto.DataType.Value(kind)
    weights = rng.integers(low, low + 16, 6 * 27).tolist()
    scales = rng.uniform(0.01, 0.1, 6).tolist()
    held = [
        make.make_tensor("w", four, [6, 3, 3, 3], weights),
        make.make_tensor("ws", real, [6], scales),
        make.make_tensor("wz", four, [6], [zero] * 6),
        make.make_tensor("s", real, [], [SCALE]),
        make.make_tensor("z", onnx.TensorProto.INT8, [], [3]),
    ]
    nodes = [
        make.make_node("QuantizeLinear", ["x", "s", "z"], ["xq"]),
        make.make_node("DequantizeLinear", ["xq", "s", "z"], ["xd"]),
        make.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=0),
        make.make_node("Conv", ["xd", "wd"], ["c"], pads=[1, 1, 1, 1]),
        make.make_node("QuantizeLinear", ["c", "s", "z"], ["cq"]),
        make.make_node("DequantizeLinear", ["cq", "s", "z"], ["y"]),
    ]
    entry = make.make_tensor_value_info("x", real, [1, 3, 8, 8])
    end = make.make_tensor_value_info("y", real, [1, 6, 8, 8])
    graph = make.make_graph(nodes, "made", [entry], [end], held)
    path = tmp_path / "four.onnx"
    opset = [make.make_opsetid("", 21)]
    onnx.save(make.make_model(graph, opset_imports=opset, ir_version=10), path)

    x = rng.standard_normal((1, 3, 8, 8)).astype(np.float32)
    module = quantized_module(to_relax(path))
    found = run(tvm.compile(module, target="llvm", relax_pipeline="default"), [x]).outputs[0]
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    (wanted,) = ort.InferenceSession(str(path), options).run(None, {"x": x})
    assert np.abs(wanted).max() > 20 * SCALE
    assert np.abs(found - wanted).max() <= SCALE * 1.001
