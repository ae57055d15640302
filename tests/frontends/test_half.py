"""Models of 16-bit floats: ONNX ones are computed in float32, PyTorch ones refused by name."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tvm_serenity.errors import UnsupportedError

onnx = pytest.importorskip("onnx")
pytest.importorskip("tvm")
from tests.cases import only_exhaustive  # noqa: E402
from tests.quantize.running import REFERENCE, Machine  # noqa: E402
from tvm_serenity.frontends.relax import to_relax  # noqa: E402
from tvm_serenity.validation.rules import rule_for  # noqa: E402
from tvm_serenity.validation.tolerances import HALF  # noqa: E402

helper, numpy_helper = onnx.helper, onnx.numpy_helper
HALF_TYPE = onnx.TensorProto.FLOAT16


def network(path: Path, *more: Any) -> bytes:
    """Write a network of float16 with a sum of 288 products, more than float16 adds up well."""
    rng = np.random.default_rng(3)

    def held(name: str, *shape: int) -> Any:
        return numpy_helper.from_array(rng.normal(size=shape).astype(np.float16), name)

    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Cast", ["r"], ["t"], to=HALF_TYPE),
        helper.make_node("Mul", ["t", "s"], ["m"]),
        helper.make_node("GlobalAveragePool", ["m"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "v"], ["y"], transB=1),
        *more,
    ]
    ends = (
        [helper.make_tensor_value_info("x", HALF_TYPE, [1, 32, 6, 6])],
        [helper.make_tensor_value_info("y", HALF_TYPE, [1, 5])],
    )
    constants = [held("w", 8, 32, 3, 3), held("b", 8), held("s", 1), held("v", 5, 8)]
    constants.append(numpy_helper.from_array(np.array(True), "k"))
    graph = helper.make_graph(nodes, "half", *ends, constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(made, path)
    return path.read_bytes()


def test_onnx_float16_is_computed_in_float32(tmp_path: Path) -> None:
    path = tmp_path / "half.onnx"
    data = network(path)
    assert rule_for(path).tolerance == HALF
    module = to_relax(path)
    conv = next(line for line in str(module["main"]).splitlines() if "conv2d" in line)
    assert 'dtype="float32"' in conv.split("R.nn")[0]
    REFERENCE.open("onnxruntime", data)
    inputs = REFERENCE.inputs(1)
    (wanted,), (found,) = REFERENCE.run(inputs).outputs, Machine(module).run(inputs)
    assert found.dtype == wanted.dtype == np.float16
    error = np.abs(found.astype(np.float64) - wanted)
    assert error.max() <= HALF.allowed(wanted)


def test_float16_within_branches_is_refused(tmp_path: Path) -> None:
    out = helper.make_tensor_value_info("z", HALF_TYPE, [1])
    inner = helper.make_graph([helper.make_node("Identity", ["s"], ["z"])], "inner", [], [out])
    branch = helper.make_node("If", ["k"], ["q"], then_branch=inner, else_branch=inner)
    network(tmp_path / "half.onnx", branch)
    with pytest.raises(UnsupportedError, match=r"operator If \(output .*\): it runs subgraphs"):
        to_relax(tmp_path / "half.onnx")


@pytest.mark.parametrize("name", [only_exhaustive("float16"), "bfloat16"])
def test_pytorch_programs_of_narrow_floats_are_refused(name: str) -> None:
    torch = pytest.importorskip("torch")
    dtype = getattr(torch, name)
    program = torch.export.export(
        torch.nn.Linear(3, 2).to(dtype).eval(), (torch.zeros(1, 3, dtype=dtype),)
    )
    with pytest.raises(UnsupportedError, match=rf"operator aten\.\w+.*: it computes in {name};"):
        to_relax(program)
