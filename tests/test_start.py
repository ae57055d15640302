"""What a command imports before it refuses a model: little, whatever the clock says."""

import os
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.cases import sampled
from tests.conformance.writer import Node, T, tflite

_CODE = """
import sys
from tvm_serenity.cli import main
sys.argv = ["serenity", *sys.argv[1:]]
try:
    main()
finally:
    print(*sorted(name for name, held in sys.modules.items() if held is not None))
"""
SLOW = ("tvm", "torch", "networkx", "onnxruntime", "scipy", "pandas", "matplotlib", "xgboost")
"""Packages of which no command may import one before it has looked at its model."""


def imported(*line: str, succeeds: bool = False) -> tuple[set[str], str]:
    """Return the modules that a command imports until it ends, and what it says."""
    done = subprocess.run(
        [sys.executable, "-c", _CODE, *line], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 or not succeeds, done.stderr
    return set(done.stdout.split()), done.stderr


def refused_tflite(folder: Path) -> Path:
    tensors = [T((1, 4), "int8", 0.1) for _ in range(4)]
    nodes = [Node(kind, [i], [i + 1]) for i, kind in enumerate(("SIN", "COS", "SIN"))]
    path = folder / "model.tflite"
    path.write_bytes(tflite(tensors, nodes, [0], [3]))
    return path


def refused_onnx(folder: Path) -> Path:
    onnx = pytest.importorskip("onnx")
    make: Any = onnx.helper
    chain = [make.make_node("Det", ["x"], ["y"]), make.make_node("StringNormalizer", ["y"], ["z"])]
    chain += [make.make_node("Det", ["z"], ["u"])]
    values = {n: make.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [2, 2]) for n in "xyzu"}
    inner = [values["y"], values["z"]]
    graph = make.make_graph(chain, "g", [values["x"]], [values["u"]], value_info=inner)
    path = folder / "model.onnx"
    path.write_bytes(make.make_model(graph).SerializeToString())
    return path


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (refused_tflite, "3 such operators: 2 SIN, 1 COS"),
        (refused_onnx, "3 such operators: 2 Det, 1 StringNormalizer"),
    ],
)
def test_a_model_is_refused_with_few_imports(tmp_path: Path, make: Any, said: str) -> None:
    output = str(tmp_path / "out")
    line = ["build", str(make(tmp_path)), "--board", "mps2-an386", "-o", output]
    modules, error = imported(*line)
    assert said in error
    assert not modules & set(SLOW)
    ours = {name for name in modules if name.startswith("tvm_serenity.")}
    others = {name for name in ours if not name.startswith("tvm_serenity.operators.")}
    assert len(others) < 97, sorted(others)
    with_tvm = [f"tvm_serenity.firmware.{p}" for p in ("lower", "select", "compile", "validate")]
    assert not any(name.startswith(tuple(with_tvm)) for name in ours)


def test_a_type_is_refused_with_few_imports(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    make: Any = onnx.helper
    x, y = (make.make_tensor_value_info(n, onnx.TensorProto.COMPLEX64, [1, 4]) for n in "xy")
    graph = make.make_graph([make.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    (tmp_path / "model.onnx").write_bytes(make.make_model(graph).SerializeToString())
    line = ["compile", str(tmp_path / "model.onnx"), "-o", str(tmp_path / "m.so")]
    modules, error = imported(*line)
    assert "value 'x': type complex64 has no kernels" in error
    assert not modules & {"tvm", "torch", "onnxruntime"}


@pytest.mark.parametrize("line", ["rows", "fit", "fit --board no-such-board", "compile -o m.so"])
def test_a_missing_model_or_board_is_refused_with_few_imports(line: str) -> None:
    command, *options = line.split()
    modules, error = imported(command, "no-such-model.tflite", *options)
    assert "no-such-" in error
    assert error.count("\n") == 1
    assert not modules & set(SLOW)


OTHER_TVM = {
    "an older one": ('__version__ = "0.14.0"', "TVM 0.14.0 is installed"),
    "none that loads": ('raise ImportError("libtvm.so: not found")', "libtvm.so: not found"),
}
COMMANDS = ["compile {model} -o m.so", "build {model} -o out --board microbit", "rows {model}"]
COMMANDS += ["fit {model}", "schedule zoo:swiftnet-cell-a", "sparse bench --mlp 8x2"]


@pytest.mark.parametrize(("line", "tvm"), sampled(product(COMMANDS, OTHER_TVM), 4))
def test_another_tvm_is_refused_in_one_line(line: str, tvm: str, tmp_path: Path) -> None:
    code, said = OTHER_TVM[tvm]
    (tmp_path / "tvm").mkdir()
    (tmp_path / "tvm" / "__init__.py").write_text(code)
    tensors = [T((1, 2, 2, 4), "int8", 0.1) for _ in range(2)]
    (tmp_path / "m.tflite").write_bytes(tflite(tensors, [Node("RELU", [0], [1])], [0], [1]))
    words = [word.format(model="m.tflite") for word in line.split()]
    done = subprocess.run(
        [sys.executable, "-m", "tvm_serenity.cli", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert done.returncode == 2
    assert said in done.stderr
    assert "apache-tvm 0.27" in done.stderr
    assert said in done.stderr.splitlines()[-1]  # what takes more than a second says what it does
    assert done.stderr.count("serenity: ") < 3


def test_a_command_imports_no_other(tmp_path: Path) -> None:
    modules, _ = imported("boards")
    found = {name for name in modules if name.startswith("tvm_serenity.cli.")}
    assert found == {
        f"tvm_serenity.cli.{n}" for n in ("_app", "boards", "commands", "derive", "show")
    }
    assert not modules & set(SLOW)


@pytest.mark.parametrize("line", ["--version", "--help"])
def test_what_is_said_of_all_commands_takes_no_slow_import(line: str) -> None:
    modules, error = imported(line, succeeds=True)
    assert error == ""
    assert not modules & {*SLOW, "tvm_ffi"}


def test_integers_are_refused_by_what_their_reader_lacks(tmp_path: Path) -> None:
    """LiteRT has EXP of int8 and int16, not of uint8."""
    tensors = [T((1, 2, 2, 4), "uint8", scale, 3) for scale in (0.1, 0.5)]
    path = tmp_path / "model.tflite"
    path.write_bytes(tflite(tensors, [Node("EXP", [0], [1])], [0], [1]))
    modules, error = imported("compile", str(path), "-o", str(tmp_path / "m.so"))
    assert "EXP" in error
    assert "tvm" not in modules


def test_a_small_graph_is_ordered_with_few_imports(tmp_path: Path) -> None:
    path = tmp_path / "net.txt"
    path.write_text("input x[10]\na RELU: x -> y[10]\noutput y\n")
    modules, error = imported("schedule", str(path))
    assert error == ""
    assert not modules & set(SLOW)
    assert "tvm_serenity.operators" not in modules
    assert "tvm_serenity.rewrite" not in modules


def float_chain(folder: Path) -> Path:
    tensors = [T((1, 4, 4, 8), "float32") for _ in range(3)]
    nodes = [Node("RELU", [0], [1]), Node("RELU", [1], [2])]
    path = folder / "float.tflite"
    path.write_bytes(tflite(tensors, nodes, [0], [2]))
    return path


def integer_chain(folder: Path) -> Path:
    tensors = [T((1, 2, 2, 4), "int8", 0.1) for _ in range(3)]
    nodes = [Node("RELU", [0], [1]), Node("RELU", [1], [2])]
    path = folder / "integers.tflite"
    path.write_bytes(tflite(tensors, nodes, [0], [2]))
    return path


GRAPH_ALONE = ("schedule", "explain", "inspect", "offchip", "report -o {out}.html", "rows --graph")


@pytest.mark.parametrize("line", sampled(GRAPH_ALONE, 3))
def test_what_a_graph_says_is_said_without_tvm(tmp_path: Path, line: str) -> None:
    command, *options = line.format(out=tmp_path / "out").split()
    modules, _ = imported(command, str(float_chain(tmp_path)), *options, succeeds=True)
    assert not modules & {"tvm", "tvm_ffi", "torch", "onnxruntime", "onnx", "ai_edge_litert"}


@pytest.mark.parametrize("line", ["explain", "report -o {out}.html"])
def test_channels_of_a_file_that_was_looked_at_take_no_tvm(
    tmp_path: Path, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERENITY_CACHE", str(tmp_path / "cache"))
    command, *options = line.format(out=tmp_path / "out").split()
    model = str(integer_chain(tmp_path))
    first, _ = imported(command, model, *options, succeeds=True)
    second, _ = imported(command, model, *options, succeeds=True)
    assert "tvm" in first
    assert not second & {"tvm", "tvm_ffi", "torch", "onnxruntime"}


def test_a_build_that_was_made_takes_no_tvm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERENITY_CACHE", str(tmp_path / "cache"))
    line = ["build", str(integer_chain(tmp_path)), "--board", "nucleo-l4r5zi", "-o"]
    first, _ = imported(*line, str(tmp_path / "one"), succeeds=True)
    second, _ = imported(*line, str(tmp_path / "two"), succeeds=True)
    assert "tvm" in first
    assert (tmp_path / "two" / "metadata.json").is_file()
    assert not second & {"tvm", "tvm_ffi", "torch", "onnxruntime", "ai_edge_litert"}


def test_importing_the_package_loads_nothing_that_is_slow() -> None:
    code = "import sys, tvm_serenity; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(found.stdout.split()) & {*SLOW, "numpy", "onnx", "typer", "rich"}


def test_shells_complete_commands_and_options() -> None:
    def completed(words: str) -> list[str]:
        settings = {
            "_SERENITY_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(words.count(" ")),
        }
        code = "import sys; sys.argv = ['serenity']; from tvm_serenity.cli import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **settings},
        )
        assert done.stderr == ""
        return done.stdout.split()

    assert completed("serenity sch") == ["schedule"]
    assert completed("serenity schedule --memory") == ["--memory-limit"]
