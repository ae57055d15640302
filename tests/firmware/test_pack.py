"""Weights and multipliers repacked: the same results as LiteRT's own steps."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm_serenity.firmware.kernels.pack import (
    LEAST_SHIFT,
    SMALL,
    Channels,
    paired,
    rounding,
    with_small_constants,
)
from tvm_serenity.quantize.fixed import scaled


def short_form(sums: np.ndarray, multiplier: int, shift: int, zero_point: int) -> np.ndarray:
    """What ``stored`` of the library clamps, in 64 bits, checked to fit into 32."""
    high = (sums * multiplier + (1 << 30)) >> 31
    total = ((high + (high >> 63)) >> (-shift - 1)) + 2 * zero_point + 1
    assert np.abs(total).max() < 1 << 31
    return np.asarray(total >> 1)


@settings(max_examples=200, deadline=None)
@given(
    st.integers(2**30, 2**31 - 1) | st.just(0),
    st.integers(-31, 2),
    st.integers(1, SMALL - 1),
    st.integers(-128, 255),
    st.integers(0, 2**32 - 1),
)
def test_requantisation_in_short_is_litert_s(
    value: int, shift: int, largest: int, zero_point: int, seed: int
) -> None:
    found = rounding("tflite", (value,), (shift,), np.array([largest]))
    assert found is not None
    sums = np.random.default_rng(seed).integers(-largest, largest, 100, endpoint=True)
    sums = np.append(sums, [0, largest, -largest, largest // 2])
    want = scaled(sums, value, shift) + zero_point
    multiplier, exponent = int(found.multipliers[0]), int(found.shifts[0])
    if found.name == "ROUND_TWICE_SMALL":
        assert LEAST_SHIFT <= exponent < 0
        assert (short_form(sums, multiplier, exponent, zero_point) == want).all()
    else:
        assert (multiplier, exponent) == (value, shift)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["int8", "uint8"]))
def test_constant_channels_in_small_numbers_give_the_same(seed: int, dtype: str) -> None:
    rng = np.random.default_rng(seed)
    outputs = 8
    weights = rng.integers(-128, 127, (5, outputs)).astype(np.int8)
    bias = rng.choice([0, 2**30, -(2**30), 12_345], outputs).astype(np.int32)
    given_values = tuple(rng.integers(2**30, 2**31 - 1, outputs).tolist())
    shifts = tuple(rng.integers(-31, 0, outputs).tolist())
    made = with_small_constants(Channels(weights, bias, given_values, shifts), dtype)
    limits = np.iinfo(dtype)
    x = rng.integers(limits.min, limits.max, (50, 5), endpoint=True)
    x[0], x[1] = limits.min, limits.max
    want = scaled(x @ weights.astype(np.int64) + bias, np.array(given_values), np.array(shifts))
    sums = x @ made.weights.astype(np.int64) + made.bias
    got = scaled(sums, np.array(made.values), np.array(made.shifts))
    assert (np.clip(got, -1000, 1000) == np.clip(want, -1000, 1000)).all()
    far = np.array([s <= -29 for s in shifts])
    assert (made.weights[:, far] == 0).all()


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 13), st.integers(1, 7), st.integers(0, 2**32 - 1))
def test_paired_weights_are_where_the_kernels_read_them(
    inputs: int, outputs: int, seed: int
) -> None:
    weights = np.random.default_rng(seed).integers(-128, 127, (inputs, outputs)).astype(np.int8)
    flat = paired(weights).reshape(-1)
    blocks = -(-inputs // 4)
    for i in range(inputs):
        for o in range(outputs):
            at = ((o // 2 * blocks + i // 4) * 2 + o % 2) * 4 + i % 4
            assert flat[at] == weights[i, o]
