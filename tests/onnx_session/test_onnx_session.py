import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx
import onnxruntime as runtime

from tests.cases import sampled
from tests.cli.run import answer, serenity
from tests.onnx_session.nets import branches, chain, mixed, wired
from tvm_serenity.errors import UnsupportedError, WrongResultError
from tvm_serenity.frontends import load, save
from tvm_serenity.memory import peak_bytes
from tvm_serenity.onnx_session import (
    LEVELS,
    SESSION_OPTIONS,
    as_allocated,
    can_measure,
    measure,
    optimise,
    session_json,
    snippet,
)
from tvm_serenity.onnx_session.process import run_bytes
from tvm_serenity.onnx_session.storage import OVERWRITES
from tvm_serenity.schedule import schedule

measured = pytest.mark.skipif(not can_measure(), reason="needs /proc/self/clear_refs")
OWN = ("Abs", "Neg", "Exp", "Sqrt", "Erf", "Floor")
MORE: dict[str, tuple[Any, ...]] = {
    "Add": (np.asarray([1], np.float32),),
    "Mul": (np.asarray([1], np.float32),),
    "Clip": (np.float32(0), np.float32(1)),
    "Reshape": (np.asarray([1, -1]),),
}


@measured
@pytest.mark.parametrize(
    "kind", [*sampled([*sorted(OVERWRITES), *OWN], 7), "Add", "Mul", "Identity", "Reshape"]
)
def test_what_is_stored_where_is_what_onnxruntime_does(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an arena, each buffer a mapping of its own: memory grows by what is alive."""
    path = chain(tmp_path / "chain.onnx", kind, *MORE.get(kind, ()))
    monkeypatch.setenv("MALLOC_MMAP_THRESHOLD_", "65536")
    options = {**SESSION_OPTIONS, "enable_cpu_mem_arena": False}
    predicted = peak_bytes(as_allocated(load(path).graph).graph)
    assert 1 <= predicted / (4 << 20) <= 2.01  # one buffer or two
    assert abs(run_bytes(path, options) - predicted) < 1 << 19


@measured
@pytest.mark.parametrize(("net", "runs_on"), sampled(product(["wired", "branches"], LEVELS), 2))
def test_a_session_takes_what_is_predicted(net: str, runs_on: str, tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    wired(path, size=192, n=24) if net == "wired" else branches(path, size=192)
    found = answer("schedule", path, "-o", tmp_path / "ordered.onnx", "--for", runs_on, "--check")
    assert found["outcome"] == "optimal"
    assert found["peak_bytes"] == found["lower_bound_bytes"] <= found["given_peak_bytes"]
    if net == "wired":
        assert found["peak_bytes"] < found["given_peak_bytes"]
    grown = found["measured"]
    assert 0.9 * found["peak_bytes"] < grown["ordered_bytes"] < 1.6 * found["peak_bytes"]
    assert grown["ordered_bytes"] < grown["default_bytes"]
    assert grown["max_error"] < 1e-4
    assert json.loads((tmp_path / "ordered.session.json").read_text()) == SESSION_OPTIONS


@pytest.mark.parametrize("runs_on", LEVELS)
@pytest.mark.parametrize("net", [wired, branches, mixed])
def test_the_order_of_the_file_is_the_order_of_the_run(
    net: Any, runs_on: str, tmp_path: Path
) -> None:
    optimised, ordered = tmp_path / "optimised.onnx", tmp_path / "ordered.onnx"
    optimise(net(tmp_path / "net.onnx"), optimised, LEVELS[runs_on])
    file = load(optimised)
    reduced = as_allocated(file.graph)
    save(file, reduced.expand(schedule(reduced.graph).order), ordered)
    names = [node.name for node in onnx.load(ordered).graph.node]
    assert _order_of_a_run(ordered, tmp_path) == names


def _order_of_a_run(path: Path, folder: Path) -> list[str]:
    options = runtime.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(folder / "profile")
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.execution_order = runtime.ExecutionOrder.PRIORITY_BASED
    session = runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    session.run(None, {i.name: np.zeros(i.shape, np.float32) for i in session.get_inputs()})
    events = json.loads(Path(session.end_profiling()).read_text())
    suffix = "_kernel_time"
    names = (event["name"] for event in events if event.get("cat") == "Node")
    return [name.removesuffix(suffix) for name in names if name.endswith(suffix)]


@pytest.mark.parametrize("level", LEVELS.values())
def test_sizes_of_optimised_files_are_those_of_a_run(level: str, tmp_path: Path) -> None:
    path = tmp_path / "optimised.onnx"
    optimise(mixed(tmp_path / "net.onnx"), path, level)
    graph = load(path).graph
    model = onnx.load(path)
    kinds = {node.op_type for node in model.graph.node}
    assert {"FusedGemm", "Gelu"} <= kinds
    assert kinds & {"FusedConv", "ReorderOutput"}
    made = [name for node in model.graph.node for name in node.output]
    del model.graph.output[:]
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in made)
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = runtime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    arrays = session.run(made, {"x": np.zeros([1, 3, 64, 64], np.float32)})
    sizes = {tensor.name: tensor.shape for tensor in graph.tensors}
    assert {name: a.shape for name, a in zip(made, arrays, strict=True)} == {
        name: sizes[name] for name in made
    }


def test_a_file_that_computes_something_else_is_found(tmp_path: Path) -> None:
    path, optimised, other = (tmp_path / f"{n}.onnx" for n in ("net", "optimised", "other"))
    optimise(branches(path), optimised, LEVELS["onnxruntime"])
    model = onnx.load(optimised)
    weight = model.graph.initializer[0]
    array = onnx.numpy_helper.to_array(weight).copy()
    array.flat[0] += 1
    weight.CopyFrom(onnx.numpy_helper.from_array(array, weight.name))
    onnx.save(model, other)
    with pytest.raises(WrongResultError, match="differ"):
        measure(path, optimised, other, {})


def test_what_onnxruntime_refuses_is_said(tmp_path: Path) -> None:
    path = chain(tmp_path / "chain.onnx", "NoSuchOperator")
    with pytest.raises(UnsupportedError, match=r"onnxruntime refuses the model: .*NoSuchOperator"):
        optimise(path, tmp_path / "optimised.onnx", LEVELS["onnxruntime"])


def test_the_lines_printed_open_the_session(tmp_path: Path) -> None:
    path = wired(tmp_path / "net.onnx", n=8)
    names: dict[str, Any] = {}
    exec(snippet(str(path)), names)
    options = names["session"].get_session_options()
    assert options.execution_order == runtime.ExecutionOrder.PRIORITY_BASED
    for name, value in json.loads(session_json()).items():
        found = getattr(options, name)
        assert (found if isinstance(value, bool) else found.name) == value


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--for", "onnx"], "--for 'onnx': there are onnxruntime, onnxruntime-all"),
        (["--for", "onnxruntime"], "--for goes with --output: it writes a file"),
        (["--for", "onnxruntime", "-o", "y.onnx", "--in-place"], "does not take --in-place"),
        (["--for", "onnxruntime", "-o", "y.onnx", "--plan", "tflm"], "does not take --plan"),
        (["--for", "onnxruntime", "-o", "y.onnx", "--rewrite"], "does not take --output"),
    ],
)
def test_refusals(options: list[str], said: str, tmp_path: Path) -> None:
    found = serenity("schedule", wired(tmp_path / "net.onnx", n=8), *options)
    assert found.returncode == 2
    assert said in found.stderr
    assert found.stderr.count("\n") == 1


def test_a_reordered_file_comes_with_what_its_runtime_does(tmp_path: Path) -> None:
    path = wired(tmp_path / "net.onnx", n=8)
    assert "--for onnxruntime" in serenity("schedule", path, "-o", tmp_path / "y.onnx").stdout


def _stored_apart(folder: Path) -> Path:
    """A network whose weights are in another file beside it."""
    weight = onnx.numpy_helper.from_array(np.ones((4, 4), np.float32), "w")
    ends = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [1, 4]) for n in "xy"]
    node = onnx.helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = onnx.helper.make_graph([node], "g", ends[:1], ends[1:], [weight])
    opset = onnx.helper.make_opsetid("", 17)
    made = onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8)
    options = {"save_as_external_data": True, "location": "net.data", "size_threshold": 0}
    onnx.save(made, folder / "net.onnx", **options)
    return folder / "net.onnx"


@pytest.mark.parametrize("where", [".", "made"])
def test_data_in_another_file_is_taken_along(where: str, tmp_path: Path) -> None:
    path, target = _stored_apart(tmp_path), tmp_path / where / "y.onnx"
    target.parent.mkdir(exist_ok=True)
    found = serenity("schedule", path, "--for", "onnxruntime", "-o", target)
    assert found.returncode == 0, found.stderr
    apart = where != "."
    assert ("copy " in found.stdout) == apart
    if apart:
        (target.parent / "net.data").write_bytes((tmp_path / "net.data").read_bytes())
    session = runtime.InferenceSession(str(target), providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(session.run(None, {"x": np.ones((1, 4), np.float32)})[0], 4)


def test_what_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _stored_apart(tmp_path)

    def wrong(*_: Any) -> None:
        raise WrongResultError("other bits")

    monkeypatch.setattr("tvm_serenity.commands.onnx_session.can_measure", lambda: True)
    monkeypatch.setattr("tvm_serenity.commands.onnx_session.measure", wrong)
    assert serenity("schedule", path, "--for", "onnxruntime", "-o", tmp_path / "y.onnx").returncode
    (tmp_path / "net.data").unlink()
    assert serenity("schedule", path, "--for", "onnxruntime", "-o", tmp_path / "y.onnx").returncode
    assert [p.name for p in tmp_path.iterdir()] == ["net.onnx"]
