"""Layers of one window with vector instructions: against numpy."""

from pathlib import Path

import numpy as np
import pytest

from tests.cases import sampled
from tests.firmware.projects import needs_board
from tests.firmware.test_library import Drawn, computed
from tests.firmware.test_vectors import library_calls
from tvm_serenity.kernels.convolution import Convolution
from tvm_serenity.kernels.records import Requantise
from tvm_serenity.quantize.fixed import multiplier

LAYERS = 48
FORMS = ("make_dense_int8", "make_dense_uint8", "positive_int8", "positive_uint8", "once_int8")


def of_one_window(seed: int) -> Drawn:
    """A layer of one window as long as its inputs, outputs by fours, one multiplier for all."""
    rng = np.random.default_rng(seed)
    dtype, rounding = ("int8", "uint8")[seed % 2], ("tflite", "tflite", "single")[seed % 3]
    limits = np.iinfo(dtype)
    inputs, made = int(rng.choice([32, 64, 96, 160, 640])), int(rng.choice([4, 8, 12, 20]))
    low = limits.min
    zero = (low, limits.max, int(rng.integers(low, limits.max)))[seed // 6 % 3]
    values = multiplier(np.array(rng.uniform(0.2, 1, 1) / (90 * inputs**0.5)))
    finish = Requantise(values, zero, low, limits.max, dtype, rounding)
    spec = Convolution(
        "NHWC",
        ((1, 1, 1, inputs),),
        dtype,
        (1, 1, inputs, made),
        "int8",
        (1, 1),
        (0, 0, 0, 0),
        (1, 1),
        1,
        int(rng.integers(low, limits.max, endpoint=True)),
        0,
        finish,
    )
    weights = rng.integers(-128, 127, spec.weight_shape, endpoint=True).astype(np.int8)
    bias = rng.integers(-20000, 20000, made).astype(np.int32)
    x = rng.integers(low, limits.max, spec.pieces[0], endpoint=True).astype(dtype)
    x[rng.random(x.shape) < 0.3] = low
    return Drawn(spec, weights, bias, (x,), computed(spec, weights, bias, (x,)))


@needs_board
def test_layers_of_one_window(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    layers = {f"one{i}": of_one_window(5000 + i) for i in range(LAYERS)}
    calls, made = library_calls(layers, monkeypatch)
    for form in FORMS:
        assert sum(form in found.kernel.body for found in made) > 2, form
    assert calls.run(tmp_path) == []


@needs_board
@pytest.mark.parametrize(
    "mutant",
    sampled(
        [
            ('"vldrb.8 q2, [r3, #-48]', '"vldrb.8 q2, [r3, #-32]'),
            ('"vmov q5[3], q5[1], r4, r8', '"vmov q5[3], q5[1], r8, r4'),
            ('"vrshl.s32 q5, r10', '"vshl.s32 q5, r10'),
            ('"vadd.i8 q0, q0, q6', '"vadd.i8 q0, q0, q5'),
        ],
        2,
        tuples=True,
    ),
)
def test_a_wrong_window_is_found(
    mutant: tuple[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    layers = {f"one{i}": of_one_window(5000 + i) for i in range(LAYERS)}
    calls, _ = library_calls(layers, monkeypatch)
    assert calls.run(tmp_path, mutant)
