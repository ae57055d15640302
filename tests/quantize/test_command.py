"""``serenity compile`` of quantised models."""

from pathlib import Path

import pytest

from tests.cli.run import answer, serenity

MODEL = "models/tflm/hello_world_int8.tflite"


def test_a_quantised_model_is_compiled_in_integers(shared: Path) -> None:
    pytest.importorskip("tvm")
    found = answer("compile", shared / MODEL, "--target", "llvm")  # weights as in the file
    channels = found["quantized"].pop("channels")
    assert found["quantized"] == {"rounding": "tflite", "kept_float": [], "weight_bytes": 336}
    assert (channels["of"], channels["left_out"]) == (33, 4)
    assert found["schedule"]["arena_bytes"] == 64 + 12  # two tensors, aligned to 64 bytes
    assert found["outputs"]["identical_to_given_order"]
    assert found["order_executed"]


def test_a_quantised_model_is_left_in_float_on_request(shared: Path) -> None:
    pytest.importorskip("tvm")
    found = answer("compile", shared / MODEL, "--quantized", "off")
    assert "quantized" not in found
    assert found["outputs"]["identical_to_given_order"]


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--quantized", "maybe", "--quantized 'maybe': there are auto, off"),
        ("--rounding", "up", "--rounding 'up': there are auto, tflite, single, float"),
        ("--tuned", "nowhere.json", "not a file of measured kernels"),
    ],
)
def test_options_that_mean_nothing_are_refused(
    option: str, value: str, said: str, shared: Path
) -> None:
    pytest.importorskip("tvm")
    ended = serenity("compile", shared / MODEL, option, value)
    assert ended.returncode == 2
    assert said in ended.stderr
