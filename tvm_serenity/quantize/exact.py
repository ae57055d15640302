"""Requantization in exact integers, and the sums at which rounding, signs and limits matter.

Written from LiteRT's and gemmlowp's definitions; it shares no code with ``quantize.fixed``, with
the kernel library or with the kernels that TVM compiles.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
TWICE, ONCE, WIDE = "tflite", "single", "wide"
"""Roundings: TWICE after the multiplication and after the shift; ONCE; WIDE for 64-bit sums.

WIDE rounds the multiplier to 15 bits.
"""
SMALL = 1 << 30
_INT32 = (-(1 << 31), (1 << 31) - 1)
_HALF = 1 << 30
_DRAWN = 12


@dataclass(frozen=True, slots=True)
class Channel:
    """The requantization of a channel: ``value * 2**(shift - 31)``, then a clamp."""

    value: int
    shift: int
    zero_point: int
    low: int
    high: int
    rounding: str


def stored_values(channel: Channel, sums: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Return the stored value of each sum, and where LiteRT's result is defined.

    It is undefined if a sum shifted to the left, or the result, exceeds 32 bits.
    """
    value, shift = np.int64(channel.value), np.int64(channel.shift)
    products, inside = multiplied(sums, value, shift, channel.rounding)
    moved = products + channel.zero_point
    return np.clip(moved, channel.low, channel.high), inside & _is_int32(moved)


def multiplied(
    sums: Ints, value: npt.ArrayLike, shift: npt.ArrayLike, rounding: str
) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Return ``sums * value * 2**(shift - 31)`` rounded, and where that is defined.

    ``value`` and ``shift`` are one number, or one per entry of the last axis. ``rounding`` is
    ``TWICE``, ``ONCE`` or ``WIDE``.
    """
    value, shift = np.asarray(value, np.int64), np.asarray(shift, np.int64)
    if rounding == TWICE:
        left = sums * (np.int64(1) << np.maximum(shift, 0))
        inside = _is_int32(left)
        rounded = _divided(_high(np.where(inside, left, 0), value), np.maximum(-shift, 0))
        return rounded, inside & _is_int32(rounded)
    if rounding == ONCE:
        rounded = _half_up(sums * value, 31 - shift)
    else:
        short = np.where(value < 0x7FFF0000, (value + (1 << 15)) >> 16, 0x7FFF)
        rounded = _half_up(sums * short, 15 - shift)
    return rounded, _is_int32(rounded)


def _half_up(product: Ints, right: Ints) -> Ints:
    unit = np.int64(1) << right
    return product // unit + (product % unit >= unit // 2)


def _high(a: Ints, b: Ints) -> Ints:
    """``SaturatingRoundingDoublingHighMul``: the quotient is cut off towards 0."""
    product = a * b
    nudged = product + np.where(product >= 0, _HALF, 1 - _HALF)
    return np.asarray(np.sign(nudged) * (np.abs(nudged) // (1 << 31)))


def _divided(x: Ints, exponent: Ints) -> Ints:
    """``RoundingDivideByPOT``."""
    mask = (np.int64(1) << exponent) - 1
    threshold = (mask >> 1) + (x < 0)
    return (x >> exponent) + ((x & mask) > threshold)


def _is_int32(x: Ints) -> npt.NDArray[np.bool_]:
    return (x >= _INT32[0]) & (x <= _INT32[1])


def telling_sums(channel: Channel, seed: int = 0) -> Ints:
    """Return 32-bit sums at which a wrong rounding, sign or limit of ``channel`` shows.

    They are: sums around halves between two results at the limits, at 0 and at random ones, of both
    signs; sums whose product with the multiplier ends in a half; the ends of 32 and of 30 bits;
    random sums.
    """
    rng = np.random.default_rng([seed, channel.value, channel.shift + 64])
    zero = channel.zero_point
    drawn = rng.integers(channel.low - zero, channel.high - zero + 1, _DRAWN)
    fixed = [channel.low - zero, channel.high - zero, -2, -1, 0, 1]
    results = np.array([*fixed, *drawn.tolist()], np.float64)
    halves = np.concatenate([results + 0.5, results - 0.5])
    unit = np.ldexp(1.0, 31 - channel.shift) / max(channel.value, 1)
    near = np.rint(np.clip(halves * unit, -(2.0**33), 2.0**33)).astype(np.int64)
    around = (near[:, None] + np.arange(-2, 3)).reshape(-1)
    ends = np.array([*_INT32, 1 - SMALL, SMALL - 1, -SMALL, SMALL, -1, 0, 1], np.int64)
    ties = _HALF // (channel.value & -channel.value or 1) * np.array([-3, -1, 1, 3], np.int64)
    any_size = rng.integers(*_INT32, _DRAWN) >> rng.integers(0, 31, _DRAWN)
    every = np.unique(np.concatenate([around, ends, ties, any_size]))
    return every[_is_int32(every)]


def hard_swish(x: int, output: tuple[int, int], gate: tuple[int, int]) -> int:
    """Return ``reference_ops::HardSwish`` of a value less its zero point, before the clamp.

    ``output`` and ``gate``: the multipliers of 31 bits, and their exponents.
    """
    hires = x * 128
    before = _high16(hires, _half(output[0]))
    gated = hires
    if gate[1] > 0:
        gated = _saturated(gated * 2 ** (gate[1] - 1))
    gated = _high16(gated, _half(gate[0]))
    if gate[1] > 0:
        gated = _saturated(gated * 2)
    elif gate[1] < 0:
        gated = _nearest_away(gated, -gate[1])
    gated = (gated + (1 << 15)) // 2
    product = gated * before
    cut = _saturated(abs(product) // (1 << 15) * (1 if product >= 0 else -1))
    return _nearest_away(cut, -output[1])


def _half(value: int) -> int:
    """``DownScaleInt32ToInt16Multiplier``."""
    return (1 << 15) - 1 if value >= (1 << 31) - 1 - (1 << 15) else (value + (1 << 15)) // (1 << 16)


def _high16(a: int, b: int) -> int:
    return _saturated((2 * a * b + (1 << 15)) // (1 << 16))


def _saturated(x: int) -> int:
    return max(-(1 << 15), min((1 << 15) - 1, x))


def _nearest_away(x: int, exponent: int) -> int:
    unit = 1 << exponent
    return (2 * abs(x) + unit) // (2 * unit) * (1 if x >= 0 else -1)
