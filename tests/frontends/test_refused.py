"""Models with operators that nothing is known of: all of them are named, before TVM is loaded."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.run import serenity
from tests.conformance.writer import Node, T, tflite
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.frontends import load
from tvm_serenity.frontends.relax import to_relax

_CODE = """
import sys
from tvm_serenity.commands.models import source
from tvm_serenity.errors import UnsupportedError
try:
    source(sys.argv[1]).module()
except UnsupportedError as error:
    print(error)
print("tvm" in sys.modules)
"""


def onnx_model(*nodes: tuple[str, str], functions: tuple[str, ...] = ()) -> Any:
    """Return a chain of operators of (domain, kind); ``functions`` are defined in the model."""
    onnx = pytest.importorskip("onnx")
    make = onnx.helper
    chain = [
        make.make_node(kind, [f"v{i}"], [f"v{i + 1}"], domain=domain)
        for i, (domain, kind) in enumerate(nodes)
    ]
    ends = [
        make.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2])
        for name in ("v0", f"v{len(nodes)}")
    ]
    opsets = [make.make_opsetid("", 17), make.make_opsetid("com.example", 1)]
    graph = make.make_graph(
        chain,
        "chain",
        ends[:1],
        ends[1:],
        value_info=[
            make.make_tensor_value_info(f"v{i}", onnx.TensorProto.FLOAT, [2])
            for i in range(1, len(nodes))
        ],
    )
    bodies = [
        make.make_function(
            "com.example",
            name,
            ["x"],
            ["y"],
            [make.make_node("Relu", ["x"], ["y"])],
            [make.make_opsetid("", 17)],
        )
        for name in functions
    ]
    return make.make_model(graph, opset_imports=opsets, functions=bodies)


def test_custom_operators_are_named_with_counts_before_tvm(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    nodes = [("com.example", "A"), ("", "Relu"), ("com.example", "B"), ("com.example", "A")]
    path.write_bytes(onnx_model(*nodes).SerializeToString())
    found = subprocess.run(
        [sys.executable, "-c", _CODE, str(path)], capture_output=True, text=True, check=True
    )
    assert "operator com.example.A (output 'v1'): it is a custom operator" in found.stdout
    assert "(3 such operators: 2 com.example.A, 1 com.example.B)" in found.stdout
    assert found.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize("command", ["compile", "rows", "build"])
def test_a_refusal_says_what_to_do_instead(command: str, tmp_path: Path) -> None:
    lstm, square = tmp_path / "lstm.onnx", tmp_path / "square.tflite"
    made = onnx_model(("com.microsoft", "DynamicQuantizeLSTM"), ("", "Relu"))
    lstm.write_bytes(made.SerializeToString())
    tensors = [T((1, 8), "int16", scale) for scale in (0.01, 0.02, 0.05)]
    square.write_bytes(tflite(tensors, [Node("SQUARED_DIFFERENCE", [0, 1], [2])], [0, 1], [2]))
    more = ("--board", "microbit", "-o", tmp_path / "made") if command == "build" else ()
    for path, operator, remedy in (
        (lstm, "com.microsoft.DynamicQuantizeLSTM (output 'v1')", "op_types_to_quantize"),
        (square, "SQUARED_DIFFERENCE that makes 't2'", "write it as SUB and MUL"),
    ):
        ended = serenity(command, path, *more, columns=1000)
        assert ended.returncode == 2
        assert f"operator {operator}: " in ended.stderr
        assert remedy in ended.stderr


def test_functions_of_the_model_are_no_custom_operators(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    nodes = [("com.example", "A"), ("", "Relu")]
    path.write_bytes(onnx_model(*nodes, functions=("A",)).SerializeToString())
    load(path).check_operators()
    to_relax(path)


def test_all_quantised_operators_without_a_meaning_are_named(tmp_path: Path) -> None:
    kinds = ("SIN", "COS", "SIN")
    tensors = [T((1, 4), "int8", 0.1) for _ in range(len(kinds) + 1)]
    nodes = [Node(kind, [i], [i + 1]) for i, kind in enumerate(kinds)]
    path = tmp_path / "model.tflite"
    path.write_bytes(tflite(tensors, nodes, [0], [len(kinds)]))
    with pytest.raises(UnsupportedError, match="2 SIN, 1 COS"):
        to_relax(path)


@pytest.mark.parametrize("inputs", [[0, 1], [0, 1, -1]])
def test_an_input_that_is_left_out_is_no_operator_to_refuse(
    tmp_path: Path, inputs: list[int]
) -> None:
    weights = np.arange(12, dtype=np.int8).reshape(3, 4)
    tensors = [
        T((2, 4), "int8", 0.1),
        T((3, 4), "int8", 0.1, data=weights),
        T((2, 3), "int8", 0.5),
    ]
    path = tmp_path / "model.tflite"
    path.write_bytes(tflite(tensors, [Node("FULLY_CONNECTED", inputs, [2])], [0], [2]))
    to_relax(path)


@pytest.mark.parametrize("stored", [True, False])
def test_integers_of_four_bits_are_constants(tmp_path: Path, stored: bool) -> None:
    weights = np.arange(-6, 6, dtype=np.int8).reshape(3, 4)
    tensors = [
        T((2, 4), "int8", 0.1),
        T((3, 4), "int4", 0.1, data=weights if stored else None),
        T((2, 3), "int8", 0.5),
    ]
    path = tmp_path / "model.tflite"
    given = [0] if stored else [0, 1]
    path.write_bytes(tflite(tensors, [Node("FULLY_CONNECTED", [0, 1], [2])], given, [2]))
    if stored:
        to_relax(path)
        return
    with pytest.raises(UnsupportedError, match="4-bit integers are supported in constants only"):
        to_relax(path)


def test_all_operators_of_a_pytorch_program_without_a_conversion_are_named() -> None:
    torch = pytest.importorskip("torch")

    class Module(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            special = torch.special
            return special.bessel_j0(x) + special.bessel_j0(x * 2) + special.zeta(x, x)

    program = torch.export.export(Module(), (torch.ones(3, 3),))
    said = r"3 such operators: 2 special_bessel_j0\.default, 1 special_zeta\.default"
    with pytest.raises(UnsupportedError, match=said):
        to_relax(program)
