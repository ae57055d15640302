"""Networks that look back instead of padding in time: what they compute, and what it brings."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import sampled
from tests.cli.run import answer, serenity
from tests.firmware.projects import needs_board
from tests.rows.nets import model
from tvm_serenity import firmware
from tvm_serenity.firmware.check.verify_report import report
from tvm_serenity.validation.references import ReferenceRuntime

pytest.importorskip("ai_edge_litert")

from tvm_serenity.frontends.tflite_causal import causal

KWS = "mlperf_tiny/kws_dscnn_int8.tflite"
SPEECH = "tflm/micro_speech_quantized.tflite"
BOARD = "mps2-an386"


def tensors(data: bytes, inputs: Any) -> dict[int, Any]:
    """Every tensor that LiteRT keeps, by its index in the file."""
    with ReferenceRuntime() as reference:
        reference.open("litert", data, keep=True)
        return dict(reference.run([inputs]).tensors)


def test_rows_that_saw_no_padding_are_the_same() -> None:
    """By LiteRT: rows of the last layer that see only sound, from the stream and from a window.

    Row y of the last layer reads rows ``2 y - 12`` to ``2 y + 13`` of its window of 49; row j of
    the network that looks back rows ``2 j`` to ``2 j + 25`` of its 74.
    """
    data = model(KWS).read_bytes()
    made = causal(data, "kws")
    assert (made.before, made.rows) == (49, 74)
    stream = np.random.default_rng(0).integers(-128, 128, (1, 74, 10, 1)).astype(np.int8)
    back = tensors(made.data, stream)
    at = 10
    window = tensors(data, np.ascontiguousarray(stream[:, at : at + 49]))
    layers = [t for t, a in window.items() if a.shape == (1, 25, 5, 64)]
    last = [t for t in layers if t in back and back[t].shape == (1, 25, 5, 64)]
    assert len(last) >= 2  # of the last pair; those before have more rows
    same = other = 0
    for tensor in last:
        for y in range(25):
            j = y - 6 + at // 2
            if not 0 <= j < 25:
                continue
            equal = np.array_equal(window[tensor][:, y], back[tensor][:, j])
            if 6 <= y <= 16:
                assert equal, (tensor, y)
                same += 1
            other += not equal
    assert same >= 22
    assert other >= 8  # rows that saw padding are others: it is another network


@needs_board
@pytest.mark.parametrize(
    ("name", "rows", "share", "ram"),
    sampled([(KWS, 74, 0.07, 13_500), (SPEECH, 58, 0.11, 6_000)], 1),
)
def test_a_step_is_a_small_part_of_a_window(
    name: str, rows: int, share: float, ram: int, tmp_path: Path
) -> None:
    written = tmp_path / "past.tflite"
    said = answer("rows", str(model(name)), "--sliding", "2", "--causal", str(written), "--check")
    assert (said["window"], said["causal"]["window_before"]) == (rows, 49)
    settings = firmware.Settings(name="net", sliding=2, output=tmp_path / "steps")
    found = report(firmware.build(str(written), BOARD, settings))
    assert found["accepted"]
    assert found["qemu"]["litert_max_abs_error"] == 0
    assert found["ram"]["arena_bytes"] + found["ram"]["stack_bytes"] <= ram
    whole = firmware.Settings(name="net", output=tmp_path / "whole", check=False)
    plain = report(firmware.build(str(model(name)), BOARD, whole), on_host=False)
    assert found["instructions"] <= share * plain["instructions"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f"{KWS} --causal p.tflite", "--causal goes with --sliding"),
        (f"{KWS} --sliding 2 --causal p.onnx", "--causal reads and writes only .tflite files"),
        (
            "mltk/mltk_keyword_spotting_on_off_v3.tflite --sliding 2 --causal p.tflite",
            "must have the same look-back",
        ),
    ],
)
def test_what_cannot_look_back_is_refused(line: str, said: str, tmp_path: Path) -> None:
    name, *options = line.split()
    options = [str(tmp_path / o) if o.startswith("p.") else o for o in options]
    found = serenity("rows", str(model(name)), *options)
    assert found.returncode == 2
    assert said in found.stderr
    assert found.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())
