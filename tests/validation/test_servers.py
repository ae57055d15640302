"""Reference runtimes are forks of one server: what one does to itself, no other one sees."""

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tflite")
pytest.importorskip("ai_edge_litert")

from tests.cases import scaled
from tests.validation.test_network import small_file
from tvm_serenity.system.isolated import isolated
from tvm_serenity.validation.references import ReferenceRuntime, ReferenceRuntimeDied
from tvm_serenity.validation.references.process import _server

X = np.arange(108, dtype=np.int8).reshape(1, 6, 6, 3)


def result(reference: ReferenceRuntime) -> bytes:
    return bytes(reference.run([X]).outputs[0].tobytes())


def number(reference: ReferenceRuntime) -> int:
    assert reference._process is not None
    return reference._process.number


@pytest.mark.parametrize("end", [signal.SIGSEGV, signal.SIGKILL])
def test_a_crash_ends_its_own_process_alone(end: signal.Signals, tmp_path: Path) -> None:
    path = small_file(tmp_path)
    with ReferenceRuntime() as one, ReferenceRuntime() as other:
        for reference in (one, other):
            reference.open("litert", path)
        right, server = result(other), _server()._process
        assert number(one) != number(other)
        os.kill(number(one), end)
        with pytest.raises(ReferenceRuntimeDied, match=f"LiteRT: died of {end.name} on this model"):
            result(one)
        assert result(other) == right
        one.open("litert", path)
        assert result(one) == right
        assert _server()._process is server


def test_a_server_that_ended_is_replaced(tmp_path: Path) -> None:
    path = small_file(tmp_path)
    with ReferenceRuntime() as one, ReferenceRuntime() as other:
        one.open("litert", path)
        right, server = result(one), _server()._process
        assert server is not None
        server.kill()
        server.wait()
        other.open("litert", path)
        assert result(one) == result(other) == right
        assert _server()._process is not server


def test_closed_processes_have_ended(tmp_path: Path) -> None:
    path = small_file(tmp_path)
    for _ in range(scaled(3, 50)):
        with ReferenceRuntime() as reference:
            reference.open("litert", path)
            child = number(reference)
        with pytest.raises(ProcessLookupError):
            os.kill(child, 0)


def test_a_file_is_sought_where_the_parent_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    helper = onnx.helper
    for shift in (1, 2):
        value = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
        made = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1])
        added = onnx.numpy_helper.from_array(np.array([shift], np.float32), "c")
        node = helper.make_node("Add", ["x", "c"], ["y"])
        graph = helper.make_graph([node], "shift", [value], [made], [added])
        folder = tmp_path / str(shift)
        folder.mkdir()
        opset = [helper.make_opsetid("", 17)]
        onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), folder / "m.onnx")
        monkeypatch.chdir(folder)
        with ReferenceRuntime() as reference:
            reference.open("onnxruntime", Path("m.onnx"))
            assert reference.run([np.array([3], np.float32)]).outputs[0].item() == 3 + shift


def test_a_fork_of_this_process_has_a_server_of_its_own(tmp_path: Path) -> None:
    path = small_file(tmp_path)

    def work() -> Any:
        with ReferenceRuntime() as reference:
            reference.open("litert", path)
            yield result(reference)
        _server().end()

    with ReferenceRuntime() as reference:
        reference.open("litert", path)
        assert list(isolated(work, 60)) == [result(reference)]
