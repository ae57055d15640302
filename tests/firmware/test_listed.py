"""Outputs that are constants, inputs, or listed twice: each is there, in every form of firmware."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import only_exhaustive
from tests.cli.run import answer, serenity
from tests.conformance.builder import Net
from tests.conformance.quantise import integer_file
from tests.conformance.writer import Node, T, tflite
from tests.firmware.projects import needs_host
from tvm_serenity import firmware
from tvm_serenity.errors import InputError
from tvm_serenity.firmware import Settings, build
from tvm_serenity.frontends import load

X = T((1, 4, 4, 2), "int8", 0.1, 3, name="x")
NETWORK = [
    X,
    T((1, 4, 4, 2), "int8", 0.1, 3, name="y"),
    T((1, 3), "int8", 0.2, 1, data=np.array([[1, -2, 3]], np.int8), name="c"),
    T((2, 2), "float32", data=np.array([[1, -2], [0.5, 3]], np.float32), name="f"),
]
RELU = [Node("RELU", [0], [1])]
LISTED = [2, 0, 1, 1, 3, 0, 2]
"""Constant, input, what is computed, again, constant, input again, first constant again."""
NAMES = ["c", "x", "y", "y_2", "f", "x_2", "c_2"]

FORMS: dict[str, dict[str, Any]] = {
    "project": {},
    "rows": {"rows": 2},
    "in place": {"in_place": True, "overlap": True, "rewrite": "all", "workspace": "grow"},
    "caller's arena": {"external_arena": True, "constants": "ram", "order": "given"},
    "MLF": {"format": "mlf"},
    "Arduino": {"format": "arduino"},
    "LLVM": {"codegen": "llvm"},
    "float": {"quantized": "off"},
}


def written(folder: Path, listed: list[int] = LISTED, nodes: list[Node] = RELU) -> Path:
    path = folder / "net.tflite"
    path.write_bytes(tflite(NETWORK, nodes, [0], listed))
    return path


@needs_host
@pytest.mark.parametrize("form", ["project", "rows", *map(only_exhaustive, list(FORMS)[2:])])
def test_every_output_is_there_and_compared(form: str, tmp_path: Path) -> None:
    found = firmware.build(written(tmp_path), "mps2-an386", Settings(**FORMS[form]))
    assert [t["name"] for t in found.outputs] == NAMES
    check = found.facts["check"]
    assert check["reference_runtime"], check
    assert [t["shape"] for t in found.outputs[4:]] == [[2, 2], [1, 4, 4, 2], [1, 3]]
    assert found.reference["output4"].tolist() == [[1, -2], [0.5, 3]]


@needs_host
@pytest.mark.parametrize("listed", [[1, 1, 2], only_exhaustive([2, 2]), only_exhaustive([0])])
def test_places_in_the_list_are_the_file_s(listed: list[int], tmp_path: Path) -> None:
    """What the runtime says of an output is held against the one at its place."""
    nodes = RELU if 1 in listed else []
    found = firmware.build(written(tmp_path, listed, nodes), "mps2-an386")
    assert len(found.outputs) == len(listed)
    assert found.facts["check"]["reference_runtime"]


@needs_host
def test_an_input_that_moves_is_refused_by_the_option(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="build without --stream-input"):
        firmware.build(written(tmp_path), "mps2-an386", Settings(stream_input=True))
    with pytest.raises(InputError, match="build without --sliding 1"):
        firmware.build(written(tmp_path, [0], []), "mps2-an386", Settings(sliding=1))


@needs_host
def test_onnx_outputs_have_their_own_names(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    helper, real = onnx.helper, onnx.TensorProto.FLOAT
    shape, stored = [1, 2, 4, 4], np.arange(6, dtype=np.float32).reshape(2, 3)
    names = ["y", "stored", "same_input", "same_result", "size"]
    kinds = [(real, shape), (real, [2, 3]), (real, shape), (real, shape)]
    kinds.append((onnx.TensorProto.INT64, [4]))
    nodes = [
        helper.make_node("Relu", ["x"], ["y"]),
        helper.make_node("Identity", ["k"], ["stored"]),
        helper.make_node("Identity", ["x"], ["same_input"]),
        helper.make_node("Identity", ["y"], ["same_result"]),
        helper.make_node("Shape", ["y"], ["size"]),
    ]
    outputs = [
        helper.make_tensor_value_info(name, dtype, extents)
        for name, (dtype, extents) in zip(names, kinds, strict=True)
    ]
    given = [helper.make_tensor_value_info("x", real, shape)]
    graph = helper.make_graph(
        nodes, "g", given, outputs, [onnx.numpy_helper.from_array(stored, "k")]
    )
    path = tmp_path / "net.onnx"
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    found = firmware.build(path, "mps2-an386")
    assert [t["name"] for t in found.outputs] == names
    assert found.facts["check"]["reference_runtime"]


@needs_host
def test_commands_take_such_a_network(tmp_path: Path) -> None:
    path, made = written(tmp_path), tmp_path / "made"
    for command in (
        ["schedule", path],
        ["explain", path],
        ["report", path, "-o", tmp_path / "page.html"],
        ["rows", path],
        ["rows", path, "--graph"],
        ["build", path, "--board", "mps2-an386", "-o", made],
        ["verify", made],
    ):
        finished = serenity(*command)
        assert finished.returncode == 0, (command, finished.stderr)
    assert answer("compile", path)["checks"]["reference_runtime"] is not None
    assert len(load(path).graph.outputs) == len(LISTED)


@needs_host
@pytest.mark.parametrize("more", [{}, {"rows": 2}])
def test_an_output_that_is_a_reshape_alone_has_its_own_shape(
    more: dict[str, Any], tmp_path: Path
) -> None:
    """By rows it was that of the pool, and the macros of the header were called wrong."""
    net = Net(3)
    y = net.conv(net.conv(net.input(1, 16, 16, 3), 8, 3), 4, 3)
    net.output(net.reshape(net.pool("AVERAGE", y, 16, 16), 1, 4))
    path = tmp_path / "net.tflite"
    path.write_bytes(integer_file(net, dict.fromkeys(range(len(net.values)), (-3.0, 3.0))))
    made = tmp_path / "made"
    build(path, "netduinoplus2", Settings(name="net", time_limit_s=1, output=made, **more))
    header = next(made.rglob("net_model.h")).read_text()
    assert "shape (1, 4). */" in header
    assert "_RANK 2\n" in header
    assert serenity("verify", made, "--host").returncode == 0
