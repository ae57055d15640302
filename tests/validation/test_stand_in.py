"""Where LiteRT dies on a model that TFLM can run, TFLM is asked."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")
pytest.importorskip("tflite")
pytest.importorskip("ai_edge_litert")

from tests.validation.test_network import small_file
from tvm_serenity.firmware.check.reference_runtime import recorded
from tvm_serenity.validation.network import compared_with_reference, reference_for
from tvm_serenity.validation.references import (
    ReferenceRuntime,
    ReferenceRuntimeDied,
    ReferenceRuntimeError,
    consulted,
)

X = np.arange(108, dtype=np.int8).reshape(1, 6, 6, 3)


def _dying(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Have runtimes end their process when they are asked to run."""
    run = ReferenceRuntime.run

    def dies(self: ReferenceRuntime, inputs: Any) -> Any:
        if self.runtime in names and self._process is not None:
            self._process.kill()
        return run(self, inputs)

    monkeypatch.setattr(ReferenceRuntime, "run", dies)


def test_the_other_runtime_answers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("tflite_micro")
    path = small_file(tmp_path)
    plain = recorded(str(path), [X])
    _dying(monkeypatch, "litert")
    found = recorded(str(path), [X])
    assert found.note == ""
    np.testing.assert_array_equal(found.outputs[0], plain.outputs[0])
    spec = reference_for(str(path))
    assert spec is not None
    verdict = compared_with_reference(spec, [([X], plain.outputs)])
    assert (verdict.reference_runtime, verdict.outcome) == ("TFLM", "identical")
    assert compared_with_reference(spec, [([X], [plain.outputs[0] + 1])]).outcome == "wrong"


def test_what_both_say_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("tflite_micro")
    path = small_file(tmp_path)
    _dying(monkeypatch, "litert", "tflm")
    with pytest.raises(
        ReferenceRuntimeError, match=r"LiteRT: died of SIGKILL .*; TensorFlow Lite for M"
    ):
        consulted("litert", path, lambda reference: reference.run([X]))
    with pytest.raises(ReferenceRuntimeDied, match="TensorFlow Lite for Micro"):
        consulted("tflm", path, lambda reference: reference.run([X]))
