"""Elements that are chosen by computed numbers before they are stored."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.cases import only_exhaustive
from tests.firmware.projects import needs_host
from tvm_serenity import firmware
from tvm_serenity.firmware import Settings


def network(path: Path, opset: int, chosen: list[int], *, given: bool) -> Path:
    """Rows of ``x`` by number, counted from the end below 0, then stored and pooled.

    ``given``: the numbers are an input, less 1.
    """
    held = {
        "i": np.array(chosen, np.int64),
        "one": np.array(1, np.int64),
        "s": np.float32(0.05),
        "z": np.uint8(100),
    }
    start = [helper.make_node("Sub", ["n", "one"], ["i"])] if given else []
    if given:
        del held["i"]
    nodes = [
        *start,
        helper.make_node("Gather", ["x", "i"], ["g"], axis=1),
        helper.make_node("QuantizeLinear", ["g", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("MaxPool", ["d"], ["p"], kernel_shape=[2, 2]),
        helper.make_node("QuantizeLinear", ["p", "s", "z"], ["pq"]),
        helper.make_node("DequantizeLinear", ["pq", "s", "z"], ["y"]),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, 5, 4))]
    if given:
        inputs.append(helper.make_tensor_value_info("n", TensorProto.INT64, (len(chosen),)))
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, len(chosen), 4, 3))
    constants = [numpy_helper.from_array(np.asarray(a), n) for n, a in held.items()]
    graph = helper.make_graph(nodes, "net", inputs, [out], constants)
    opsets = [helper.make_opsetid("", opset)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), str(path))
    return path


@needs_host
@pytest.mark.parametrize(
    ("opset", "chosen", "given"),
    [
        (13, [2, 0, 1], False),
        (17, [-1, 1], False),
        (13, [2], True),
        *map(only_exhaustive, [(17, [2, 0, 1], False), (13, [-1, 1], False), (17, [2], True)]),
    ],
)
def test_it_is_onnxruntimes(opset: int, chosen: list[int], given: bool, tmp_path: Path) -> None:
    path = network(tmp_path / "net.onnx", opset, chosen, given=given)
    built = firmware.build(str(path), "mps2-an386", Settings(time_limit_s=1))
    assert built.facts["check"]["reference_runtime"]
