"""Convolutions with vector instructions: windows of three lines, read in place, and copies."""

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

LAYERS = 60


def of_lines(seed: int) -> Drawn:
    """A layer of several lines: channels by sixteens of one tensor or two, or few; any border."""
    rng = np.random.default_rng(seed)
    dtype, few = ("int8", "uint8")[seed % 2], seed % 3 == 2
    limits = np.iinfo(dtype)
    kh, kw = (int(n) for n in rng.choice([1, 2, 3], 2))
    if few:
        kh, kw = int(rng.integers(5, 8)), int(rng.integers(5, 9))
    channels = [int(rng.choice([1, 2]) if few else rng.choice([16, 32]))]
    channels += [16] if seed % 5 == 0 and not few else []
    made = int(rng.choice([4, 6, 8]))
    border = tuple(int(n) for n in rng.integers(0, [kh, kw, kh, kw]))
    high = int(rng.integers(3, 9)) + (kh if few else 0)
    wide = max(int(rng.integers(1, 9)) + (kw if few else 0), kw - border[1] - border[3])
    zero = int(rng.integers(limits.min, limits.max))
    values = multiplier(rng.uniform(0.2, 1, made) / (60 * (kh * kw * sum(channels)) ** 0.5))
    spec = Convolution(
        "NHWC",
        tuple((1, high, wide, n) for n in channels),
        dtype,
        (kh, kw, sum(channels), made),
        "int8",
        (int(rng.choice([1, 1, 2])), int(rng.choice([1, 1, 2]))),
        (border[0], border[1], border[2], border[3]),
        (1, 1),
        1,
        int(rng.integers(limits.min, limits.max, endpoint=True)),
        0,
        Requantise(values, zero, limits.min, limits.max, dtype, "tflite"),
    )
    weights = rng.integers(-127, 127, spec.weight_shape, endpoint=True).astype(np.int8)
    bias = rng.integers(-5000, 5000, made).astype(np.int32)
    x = tuple(
        rng.integers(limits.min, limits.max, shape, endpoint=True).astype(dtype)
        for shape in spec.pieces
    )
    return Drawn(spec, weights, bias, x, computed(spec, weights, bias, x))


@needs_board
def test_layers_of_three_lines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    layers = {f"lines{i}": of_lines(6000 + i) for i in range(LAYERS)}
    calls, made = library_calls(layers, monkeypatch)
    for form in ("READ_IN_PLACE_int8", "READ_IN_PLACE_uint8", "GATHERED_int8", "GATHERED_uint8"):
        assert sum(form in m.kernel.body and "_lines" in m.kernel.body for m in made) > 4, form
    assert calls.run(tmp_path) == []


@needs_board
@pytest.mark.parametrize(
    "mutant",
    sampled(
        [
            ('"vcmp.i32 ne, q0', '"vcmp.i32 eq, q0'),
            ('"vmov.32 q1[3], %[zero]', '"vmov.32 q1[2], %[zero]'),
            ("max_i32(min_i32(c->width - x, wide), 0)", "wide"),
            ("part == 1 ? rows[i * lines]", "part == 1 ? rows[lines]"),
            ('"vaddva.u8 %1', '"vaddva.s8 %1'),
            ('"vdup.8 q1, %[zero]', '"vdup.8 q1, %[count]'),
            ('"add r2, %[x]', '"adds r2, #0'),
        ],
        2,
        tuples=True,
    ),
)
def test_a_wrong_line_is_found(
    mutant: tuple[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    layers = {f"lines{i}": of_lines(6000 + i) for i in range(LAYERS)}
    calls, _ = library_calls(layers, monkeypatch)
    assert calls.run(tmp_path, mutant)
