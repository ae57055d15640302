"""What ``firmware.build`` opens: files with named dimensions, built-in networks, modules."""

from pathlib import Path
from typing import Any

import pytest

from tests.firmware.small import windows
from tvm_serenity import firmware
from tvm_serenity.errors import InputError


def named(path: Path) -> Path:
    """A network of ``N`` rows of 4 numbers."""
    onnx = pytest.importorskip("onnx")
    real = onnx.TensorProto.FLOAT
    x, y = (onnx.helper.make_tensor_value_info(n, real, ["N", 4]) for n in "xy")
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)]), path)
    return path


def built(model: Any, **settings: Any) -> firmware.Project:
    return firmware.build(model, "mps2-an386", firmware.Settings(check=False, **settings))


@pytest.mark.parametrize("rows", [1, 3])
def test_named_dimensions_take_their_sizes(rows: int, tmp_path: Path) -> None:
    found = built(named(tmp_path / "net.onnx"), dims={"N": rows})
    assert [t["shape"] for t in found.inputs] == [[rows, 4]]


def test_a_named_dimension_without_a_size_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="N"):
        built(named(tmp_path / "net.onnx"))


@pytest.mark.parametrize("model", ["zoo:swiftnet?size=32", "module"])
def test_sizes_go_with_files_alone(model: str) -> None:
    with pytest.raises(InputError, match="--dim is for model files only"):
        built(windows() if model == "module" else model, dims={"N": 1})
