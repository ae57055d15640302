"""Layers of one window, and sums as one linear form, with vector instructions: against numpy."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.firmware.projects import needs_board
from tests.firmware.test_library import Drawn, computed
from tests.firmware.test_vectors import Calls, library_calls, summed
from tvm_serenity.firmware.tir.linear import linear_form
from tvm_serenity.firmware.tir.sums import sum_with_vectors
from tvm_serenity.kernels.convolution import Convolution
from tvm_serenity.kernels.records import Requantise
from tvm_serenity.kernels.rows import RowKernel, RowParam
from tvm_serenity.quantize.fixed import multiplier, scaled

LAYERS, SEEDS = 48, 160
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
    [
        ('"vldrb.8 q2, [r3, #-48]', '"vldrb.8 q2, [r3, #-32]'),
        ('"vmov q5[3], q5[1], r4, r8', '"vmov q5[3], q5[1], r8, r4'),
        ('"vrshl.s32 q5, r10', '"vshl.s32 q5, r10'),
        ('"vadd.i8 q0, q0, q6', '"vadd.i8 q0, q0, q5'),
    ],
)
def test_a_wrong_window_is_found(
    mutant: tuple[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    layers = {f"one{i}": of_one_window(5000 + i) for i in range(LAYERS)}
    calls, _ = library_calls(layers, monkeypatch)
    assert calls.run(tmp_path, mutant)


def linear_sums() -> Calls:
    """All pairs of values of sums that have a linear form, whole and a row of them."""
    calls, row = Calls(), RowKernel((None,), (), (RowParam(0, ()), RowParam(1, ())), {})
    found = 0
    for seed in range(SEEDS):
        spec, operands, expected = summed(seed)
        whole, by_row = sum_with_vectors(f"sum{seed}", spec, None), None
        if whole is None or "add_linear" not in whole.body:
            continue
        found += 1
        by_row = sum_with_vectors(f"sum{seed}_row", spec, row)
        assert by_row is not None
        assert "add_linear" in by_row.body
        calls.add(whole, list(operands), expected, 0, "")
        calls.add(by_row, [v[0, 0] for v in operands], expected[0, 0], 0, "")
    assert found > 5
    return calls


def test_a_linear_form_is_the_sum_of_every_pair() -> None:
    found = 0
    for seed in range(SEEDS):
        spec, _, _ = summed(seed)
        form = linear_form(spec)
        if form is None or spec.right.real[0] < 0:
            continue
        found += 1
        pair, values = spec.pair, _values(spec.pair.result.dtype)
        first, second = (
            scaled((values - source.zero_point) << spec.shift, m.value[0], m.shift[0])
            for source, m in zip(pair.sources, (spec.left, spec.right), strict=True)
        )
        total = first[:, None] + second
        made = scaled(total, spec.out.value[0], spec.out.shift[0]) + pair.result.zero_point
        sums = values[:, None] * form.first + values * form.second + form.constant
        half = (sums + (1 << 15) >> 16) + 32 >> 6
        low, high = pair.low, pair.high
        assert np.array_equal(np.clip(half, low, high), np.clip(made, low, high))
        assert np.abs(sums).max() < 1 << 31
    assert found > 5


def _values(dtype: str) -> Any:
    limits = np.iinfo(dtype)
    return np.arange(limits.min, limits.max + 1, dtype=np.int64)


@needs_board
def test_linear_sums(tmp_path: Path) -> None:
    assert linear_sums().run(tmp_path) == []


@needs_board
@pytest.mark.parametrize(
    "mutant",
    [
        ('"vmlas.s32 q0, q2', '"vmla.s32 q0, q2'),
        ('"vqrshrnb.s16 q0, q0, #6', '"vqrshrnb.s16 q0, q0, #5'),
        ('"vqrshrunb.s16 q0, q0, #6', '"vqrshrnb.s16 q0, q0, #6'),
        ('"dlstp.32 lr, %6', '"dlstp.16 lr, %6'),
    ],
)
def test_a_wrong_sum_is_found(mutant: tuple[str, str], tmp_path: Path) -> None:
    assert linear_sums().run(tmp_path, mutant)
