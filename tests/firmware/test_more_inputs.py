"""Faults that few inputs show: ``build`` compares a network with its runtime on many."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")
pytest.importorskip("tflite")
pytest.importorskip("ai_edge_litert")

from tests.cli.run import serenity
from tests.conformance.writer import Node, T, tflite
from tests.firmware.projects import needs_host
from tvm_serenity.firmware import kept
from tvm_serenity.firmware.check import drawn_inputs, host_run
from tvm_serenity.firmware.kernels import sources
from tvm_serenity.firmware.program import LibraryFile
from tvm_serenity.quantize import lookups
from tvm_serenity.validation.references import ReferenceRuntime

CONV = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}


def network(folder: Path) -> Path:
    """A pointwise convolution, a sigmoid of which no input has all values, and a dense layer."""
    rng = np.random.default_rng(0)
    tensors = [
        T((1, 4, 4, 8), "int8", 0.05, -3, name="x"),
        T((8, 1, 1, 8), "int8", [0.01] * 8, data=rng.integers(-127, 127, (8, 1, 1, 8), np.int8)),
        T((8,), "int32", [0.0005] * 8, data=rng.integers(-500, 500, 8, np.int32)),
        T((1, 4, 4, 8), "int8", 0.04, 4, name="y"),
        T((1, 4, 4, 8), "int8", 1 / 256, -128, name="z"),
        T((64, 128), "int8", 0.01, data=rng.integers(-127, 127, (64, 128), np.int8)),
        T((64,), "int32", 0.01 / 256, data=rng.integers(-500, 500, 64, np.int32)),
        T((1, 64), "int8", 0.02, 3, name="d"),
    ]
    dense = {"keepNumDims": False, "weightsFormat": 0}
    nodes = [
        Node("CONV_2D", [0, 1, 2], [3], CONV),
        Node("LOGISTIC", [3], [4]),
        Node("FULLY_CONNECTED", [4, 5, 6], [7], dense),
    ]
    path = folder / "net.tflite"
    path.write_bytes(tflite(tensors, nodes, [0], [4, 7]))
    return path


def built(folder: Path, *options: str) -> Any:
    return serenity(
        *("build", network(folder), "--board", "mps3-an547", "-o", folder / "made"),
        *("--json", *options),
    )


@needs_host
def test_so_many_inputs_are_compared_by_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "entries", lambda: None)  # the project is made now
    started: list[ReferenceRuntime] = []
    start = ReferenceRuntime._start

    def counted(runtime: ReferenceRuntime) -> Any:
        started.append(runtime)
        return start(runtime)

    monkeypatch.setattr(ReferenceRuntime, "_start", counted)
    check = json.loads(built(tmp_path).stdout)["check"]
    assert check["reference_runtime_inputs"] == drawn_inputs.MOST_INPUTS
    assert len(started) == 1


def test_the_default_finds_a_rare_error() -> None:
    """An error of one unit that 5 % of all inputs show, with 99 %."""
    assert 0.95**drawn_inputs.MOST_INPUTS < 0.01
    assert host_run.runs_for(1) == drawn_inputs.MOST_INPUTS
    assert host_run.runs_for(10**12) == drawn_inputs.LEAST_INPUTS


@needs_host
@pytest.mark.parametrize("entry", [60, 128, 200])
def test_one_entry_of_a_table_is_found(
    entry: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table is wrong for TVM's kernel and for ours alike."""
    right = lookups.lookup8

    def wrong(*given: Any) -> Any:
        table = right(*given).copy()
        table[entry] += 1
        return table

    monkeypatch.setattr(lookups, "lookup8", wrong)
    found = built(tmp_path)
    assert found.returncode == 1
    assert f"LOGISTIC: entry {entry} of its table" in found.stderr
    assert not (tmp_path / "made").exists()


@needs_host
def test_a_rounding_that_few_sums_show_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = sources.text

    def wrong(file: LibraryFile) -> str:
        return right(file).replace("(high + (high >> 31))", "high")

    monkeypatch.setattr(sources, "text", wrong)
    found = built(tmp_path, "--workspace", "grow")
    assert found.returncode == 1
    assert "result" in found.stderr or "runtime" in found.stderr
