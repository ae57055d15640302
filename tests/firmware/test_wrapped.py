"""SVDF's newest column is limited before its zero point is added, and wraps around in a byte."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")

from tests.cases import sampled
from tests.conformance.operators.draws import case
from tests.conformance.writer import Node, T
from tests.firmware.projects import needs_board
from tvm_serenity import firmware
from tvm_serenity.firmware.check.verify_report import report
from tvm_serenity.firmware.kernels.parts import epilogue
from tvm_serenity.firmware.kernels.parts.layer import RoundedConvolution

USERS = ("parts.planes", "parts.tile_2x4", "parts.pairs", "parts.epilogue")
INPUTS, FILTERS, MEMORY, ZERO = 32, 16, 4, -50


def _model() -> bytes:
    """A layer half of whose sums are beyond the range of the state."""
    draw = np.random.default_rng(3)
    feature = draw.integers(-127, 128, (FILTERS, INPUTS)).astype(np.int8)
    time = draw.integers(-127, 128, (FILTERS, MEMORY)).astype(np.int8)
    bias = draw.integers(-999, 999, (FILTERS,)).astype(np.int32)
    state = T((1, FILTERS * MEMORY), "int8", 0.02, ZERO, variable=True)
    tensors = [
        T((1, INPUTS), "int8", 0.02, 3),
        T(feature.shape, "int8", 0.01, 0, feature),
        T(time.shape, "int8", 0.01, 0, time),
        T((FILTERS,), "int32", 0.0002, 0, bias),
        state,
        T((1, FILTERS), "int8", 0.05, 0),
    ]
    node = Node("SVDF", [0, 1, 2, 3, 4], [5], {"rank": 1, "fusedActivationFunction": 1})
    feeds = ((draw.integers(-128, 128, (1, INPUTS)).astype(np.int8),),)
    return bytes(case("SVDF", tensors, node, feeds=feeds).data)


def _verified(folder: Path, board: str) -> dict[str, Any]:
    (folder / "net.tflite").write_bytes(_model())
    settings = firmware.Settings(name="net", output=folder / "made", check=False)
    return report(firmware.build(folder / "net.tflite", board, settings), on_host=False)


@needs_board
@pytest.mark.parametrize("board", sampled(["mps2-an386", "mps2-an385", "mps3-an547"], 2))
def test_the_board_wraps_as_the_reference_does(board: str, tmp_path: Path) -> None:
    found = _verified(tmp_path, board)["qemu"]
    assert found["identical"]
    assert found["litert_max_abs_error"] == 0


@needs_board
def test_a_kernel_that_saturates_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A seeded fault: the five instructions take limits beyond those of a byte."""
    sound = epilogue.is_short

    def faulty(layer: RoundedConvolution) -> bool:
        r = layer.spec.requantise
        cut = replace(r, low=max(r.low, -128), high=min(r.high, 127))
        return sound(replace(layer, spec=replace(layer.spec, requantise=cut)))

    for module in USERS:
        monkeypatch.setattr(f"tvm_serenity.firmware.kernels.{module}.is_short", faulty)
    assert not _verified(tmp_path, "mps2-an386")["qemu"]["identical"]
