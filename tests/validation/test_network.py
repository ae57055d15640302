"""Networks against their own runtime, on inputs that are given, and what the command line says."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

tvm = pytest.importorskip("tvm")
pytest.importorskip("tflite")
pytest.importorskip("ai_edge_litert")
from tvm import relax  # noqa: E402

from tests.cli.run import process_state  # noqa: E402
from tests.conformance.writer import Node, T, tflite  # noqa: E402
from tvm_serenity.cli import main  # noqa: E402
from tvm_serenity.commands.models import ModelSource  # noqa: E402
from tvm_serenity.errors import InputError  # noqa: E402
from tvm_serenity.validation.input_files import given_inputs  # noqa: E402
from tvm_serenity.validation.network import (  # noqa: E402
    compared_with_reference,
    reference_for,
    reference_program,
)
from tvm_serenity.validation.reference_spec import ReferenceSpec  # noqa: E402


def small_file(folder: Path) -> Path:
    """Write an int8 network of a convolution, and a pool whose result is padded."""
    rng = np.random.default_rng(0)
    tensors = [
        T((1, 6, 6, 3), "int8", 0.05, -3, name="x"),
        T((5, 3, 3, 3), "int8", [0.01] * 5, data=rng.integers(-127, 127, (5, 3, 3, 3), np.int8)),
        T((5,), "int32", 0.0005, data=rng.integers(-500, 500, 5, np.int32)),
        T((1, 6, 6, 5), "int8", 0.07, 4, name="y"),
        T((1, 3, 3, 5), "int8", 0.07, 4, name="z"),
    ]
    one = {"dilationHFactor": 1, "dilationWFactor": 1, "strideH": 1, "strideW": 1}
    two = {"strideH": 2, "strideW": 2, "filterHeight": 2, "filterWidth": 2}
    nodes = [Node("CONV_2D", [0, 1, 2], [3], one), Node("MAX_POOL_2D", [3], [4], two)]
    path = folder / "small.tflite"
    path.write_bytes(tflite(tensors, nodes, [0], [4]))
    return path


def command(capsys: Any, monkeypatch: Any, *arguments: object) -> tuple[int, str, str]:
    """Return status, output and errors of a command in this process."""
    monkeypatch.setattr(sys, "argv", ["serenity", *map(str, arguments)])
    with pytest.raises(SystemExit) as end, process_state():
        main()
    printed = capsys.readouterr()
    return int(end.value.code or 0), printed.out, printed.err


def test_compile_says_what_was_compared(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    model, inputs = small_file(tmp_path), tmp_path / "in.npz"
    np.savez(inputs, x=np.full((1, 6, 6, 3), 7, np.int8))
    status, out, err = command(capsys, monkeypatch, "compile", model, "--input", inputs, "--json")
    assert status == 0, err
    checks = json.loads(out)["checks"]
    assert checks["kernels"] == 2
    assert not checks["skipped"]
    reference = checks["reference_runtime"]
    assert (reference["reference_runtime"], reference["outcome"], reference["runs"]) == (
        "LiteRT",
        "identical",
        2,
    )
    assert "validating 2 kernels" in err  # plain lines where there is no terminal
    status, out, err = command(capsys, monkeypatch, "compile", model, "--no-check")
    assert (status, "NOT validated" in " ".join(out.split())) == (0, True)


def test_another_rounding_is_a_wrong_result(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    """A mutant that TVM's own kernels share: only the runtime sees it."""

    def single(opened: ModelSource, *_rest: Any) -> tuple[Any, str]:
        return opened.module("single"), "single"

    monkeypatch.setattr("tvm_serenity.commands.compile.opened_for", single)
    model, out = small_file(tmp_path), tmp_path / "out"
    status, _, err = command(capsys, monkeypatch, "compile", model, "-o", out)
    assert status == 1, err
    assert "serenity: wrong against LiteRT: result[" in err
    assert not out.exists()
    assert "Traceback" not in err


def test_reference_runtimes_that_cannot_answer_are_absent(tmp_path: Path) -> None:
    data = small_file(tmp_path).read_bytes()
    x, y = np.zeros((1, 6, 6, 3), np.int8), np.zeros((1, 3, 3, 5), np.int8)
    assert compared_with_reference(ReferenceSpec("litert", data), [([x], [y])]).outcome == "wrong"
    assert (
        "refuses it"
        in compared_with_reference(ReferenceSpec("litert", b"TFL3 nothing"), [([x], [y])]).text()
    )
    absent = compared_with_reference(ReferenceSpec("litert", data), [([], [y])])
    assert (absent.outcome, absent.json()["runs"]) == ("absent", 0)
    assert "has 1 inputs for the model, the module has 0" in absent.reason


def test_exported_programs_are_held_against_torch() -> None:
    torch = pytest.importorskip("torch")
    exported = torch.export.export(torch.nn.Softplus(), (torch.zeros(3),))
    x = np.linspace(-1, 1, 3, dtype=np.float32)
    right = np.log1p(np.exp(x))
    spec = reference_program(exported)
    assert compared_with_reference(spec, [([x], [right])]).outcome in ("identical", "accepted")
    assert compared_with_reference(spec, [([x], [right + np.float32(0.001)])]).outcome == "wrong"


def tokens() -> Any:
    ids = relax.Var("ids", relax.TensorType((4,), "int64"))
    x = relax.Var("x", relax.TensorType((4, 2), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [ids, x]):
        with builder.dataflow():
            words = builder.emit(relax.op.take(relax.const(np.ones((9, 2), "float32")), ids, 0))
            out = builder.emit_output(builder.emit(relax.op.add(words, x)))
        builder.emit_func_output(out)
    return builder.finalize()


def test_given_inputs_are_checked(tmp_path: Path) -> None:
    ids, x = np.arange(4), np.ones((4, 2), np.float32)
    file, first, second = (str(tmp_path / n) for n in ("in.npz", "a.npy", "b.npy"))
    module = tokens()
    np.savez(file, x=x, ids=ids)
    assert [a.tobytes() for a in given_inputs([file], module)] == [ids.tobytes(), x.tobytes()]
    np.savez(file, ids, x)
    assert [a.tobytes() for a in given_inputs([file], module)] == [ids.tobytes(), x.tobytes()]
    np.save(first, ids)
    np.save(second, x)
    assert [a.tobytes() for a in given_inputs([first, second], module)][1] == x.tobytes()
    for wrong, said in (
        (ids.astype(np.int32), "has type int32, the network takes int64"),
        (ids[:3], r"has shape \(3,\)"),
        (ids + 7, "values from 7 to 10 are used as indices, which must lie from 0 to 8"),
    ):
        np.save(first, wrong)
        with pytest.raises(InputError, match=f"--input ids: .*{said}"):
            given_inputs([first, second], module)
    with pytest.raises(InputError, match="2 inputs: ids int64"):
        given_inputs([second], module)
    np.savez(file, x=x, words=ids)
    with pytest.raises(InputError, match="the inputs are ids, x"):
        given_inputs([file], module)
    with pytest.raises(InputError, match="cannot be read"):
        given_inputs([str(tmp_path / "none.npz")], module)


def test_small_sigmoids_are_held_against_what_onnxruntime_can_compute(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    x, y = (onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [64]) for n in "xy")
    graph = onnx.helper.make_graph([onnx.helper.make_node("Sigmoid", ["x"], ["y"])], "g", [x], [y])
    opset = [onnx.helper.make_opsetid("", 17)]
    path = tmp_path / "sigmoid.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=opset, ir_version=8), str(path))
    spec, inputs = reference_for(str(path)), np.linspace(-16, -14, 64, dtype=np.float32)
    assert spec is not None
    exact = (1 / (1 + np.exp(-inputs.astype(np.float64)))).astype(np.float32)
    assert compared_with_reference(spec, [([inputs], [exact])]).outcome == "accepted"
    assert (
        compared_with_reference(spec, [([inputs], [exact + np.float32(1e-6)])]).outcome == "wrong"
    )
