"""Scales that no quantised model can have are refused by operator and tensor."""

from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("tvm")
from tvm_serenity.errors import InputError  # noqa: E402
from tvm_serenity.frontends.relax import to_relax  # noqa: E402


@pytest.mark.parametrize("scale", [np.inf, np.nan, 0.0, -1.0])
def test_a_scale_is_finite_and_above_zero(scale: float, tmp_path: Path) -> None:
    """As onnxruntime's quantiser writes for a mask of -inf."""
    h, kind = onnx.helper, onnx.TensorProto.FLOAT
    x, y = (h.make_tensor_value_info(name, kind, [4]) for name in "xy")
    held = [
        onnx.numpy_helper.from_array(np.float32(scale), "mask_scale"),
        onnx.numpy_helper.from_array(np.uint8(0), "zero"),
    ]
    nodes = [
        h.make_node("QuantizeLinear", ["x", "mask_scale", "zero"], ["q"]),
        h.make_node("DequantizeLinear", ["q", "mask_scale", "zero"], ["y"]),
    ]
    graph = h.make_graph(nodes, "net", [x], [y], held)
    path = tmp_path / "net.onnx"
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), str(path))
    said = (
        r"operator QuantizeLinear \(output 'q'\): tensor 'mask_scale': scale .*quantise the model"
    )
    with pytest.raises(InputError, match=said):
        to_relax(str(path))
