"""TFLM's signal library where single operators that are drawn do not reach: over many runs.

What TFLM leaves as it lies in memory (frames that are not full) is not compared.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conformance.writer import Array, Node, T, tflite
from tests.firmware.projects import model
from tests.quantize.running import REFERENCE, Machine
from tvm_serenity.errors import InputError
from tvm_serenity.frontends._flexbuffer import flexible
from tvm_serenity.frontends.relax import to_relax
from tvm_serenity.relax.quantize import kept_float, quantized_module
from tvm_serenity.validation.references import runtime_for

RUNS = 24


def machine(path: Path) -> Machine:
    """A file on the Relax VM, and open at its reference runtime, which is TFLM."""
    module = quantized_module(to_relax(path))
    assert kept_float(module) == ()
    data = path.read_bytes()
    assert runtime_for(path, data) == "tflm"
    REFERENCE.open("tflm", data)
    return Machine(module)


def both(ours: Machine, run: int, feed: Array) -> tuple[list[Array], Any]:
    """What both make of an input, with the states that the run before left."""
    if run == 0:
        return ours.run([feed]), REFERENCE.run([feed]).outputs
    return ours.step([feed]), REFERENCE.step([feed]).outputs


def test_the_preprocessor_of_speech_is_tflms_over_many_frames() -> None:
    ours, rng = machine(model("tflm/audio_preprocessor_int8.tflite")), np.random.default_rng(0)
    seen = set()
    for run in range(RUNS):
        loud = (1, 30, 1000, 32767)[run % 4]
        feed = rng.integers(-loud, loud + 1, (1, 480)).astype(np.int16)
        if run % 5 == 3:
            feed[0] = loud * np.sin(np.arange(480) * rng.uniform(0.01, 2))
        if run % 11 == 5:
            feed[:] = -32768
        mine, theirs = both(ours, run, feed)
        np.testing.assert_array_equal(mine[0], theirs[0], err_msg=f"run {run}")
        seen.add(theirs[0].tobytes())
    assert len(seen) > RUNS // 2


FRAMES = [
    Node("SignalFramer", [0], [1, 2], {"frame_size": 10, "frame_step": 4, "prefill": False}),
    Node("SignalFramer", [0], [1, 2], {"frame_size": 9, "frame_step": 2, "prefill": False}),
    Node("SignalFramer", [0], [1, 2], {"frame_size": 8, "frame_step": 4, "prefill": False}),
    *(
        Node(
            "SignalStacker",
            [0],
            [1, 2],
            {
                "num_channels": 3,
                "stacker_left_context": left,
                "stacker_right_context": right,
                "stacker_step": step,
            },
        )
        for left, right, step in ((1, 2, 2), (0, 3, 1), (2, 1, 4), (3, 0, 3), (0, 0, 1))
    ),
]


@pytest.mark.parametrize("node", FRAMES, ids=lambda n: f"{n.kind}-{list(n.options.values())}")
def test_frames_are_valid_when_tflms_are(node: Node, tmp_path: Path) -> None:
    options, path = node.options, tmp_path / "net.tflite"
    given: tuple[int, ...]
    made: tuple[int, ...]
    if node.kind == "SignalFramer":
        given, made = (2, 4), (2, 4 // options["frame_step"], options["frame_size"])
    else:
        frames = options["stacker_left_context"] + options["stacker_right_context"] + 1
        given, made = (3,), (3 * frames,)
    tensors = [T(given, "int16"), T(made, "int16"), T((), "bool")]
    path.write_bytes(tflite(tensors, [node], [0], [1, 2]))
    ours, rng = machine(path), np.random.default_rng(1)
    valid = []
    for run in range(RUNS):
        feed = rng.integers(-32768, 32768, given).astype(np.int16)
        mine, theirs = both(ours, run, feed)
        assert mine[1] == theirs[1], run
        valid.append(bool(theirs[1]))
        if valid[-1]:
            np.testing.assert_array_equal(mine[0], theirs[0], err_msg=f"run {run}")
        else:
            assert not mine[0].any() or given == (2, 4)
    assert any(valid)


def test_energies_outside_of_the_range_are_zero(tmp_path: Path) -> None:
    node = Node("SignalEnergy", [0], [1], {"start_index": 3, "end_index": 9})
    path = tmp_path / "net.tflite"
    path.write_bytes(tflite([T((26,), "int16"), T((13,), "uint32")], [node], [0], [1]))
    ours, rng = machine(path), np.random.default_rng(2)
    feed = rng.integers(-32768, 32768, 26).astype(np.int16)
    (mine,), (theirs,) = both(ours, 0, feed)
    np.testing.assert_array_equal(mine[3:9], theirs[3:9])
    assert mine[3:9].all()
    assert not mine[:3].any()
    assert not mine[9:].any()


def test_options_are_read_as_flatbuffers_reads_them() -> None:
    flexbuffers = pytest.importorskip("flatbuffers.flexbuffers")
    for options in (
        {"a": 1},
        {"long name": -70000, "b": True, "c": 2.5, "z": 1 << 40},
        {f"k{i}": i * 1000 for i in range(40)},
        {},
    ):
        assert flexible(bytes(flexbuffers.Dumps(options))) == options
    assert flexible(b"") == {}
    assert flexible(bytes(flexbuffers.Dumps({"a": "text", "b": 3}))) == {"b": 3}


def test_damaged_options_are_refused_or_read() -> None:
    flexbuffers = pytest.importorskip("flatbuffers.flexbuffers")
    data = bytes(flexbuffers.Dumps({"fft_length": 512, "T": 7, "x": 1.5}))
    rng = np.random.default_rng(3)
    refused = 0
    for _ in range(2000):
        damaged = bytearray(data[: rng.integers(1, len(data) + 1)])
        damaged[rng.integers(len(damaged))] = rng.integers(256)
        try:
            flexible(bytes(damaged))
        except InputError:
            refused += 1
    assert refused > 100
