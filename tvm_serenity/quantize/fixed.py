"""Real multipliers as integers, and the rounding of TFLite's reference kernels.

A multiplier m > 0 is ``value * 2**(shift - 31)`` with ``value`` in [2**30, 2**31). ``scaled`` is
the computation of the kernels on numpy arrays: the specification of ``kernels/arithmetic.py``.

* ``tflite``: round after the multiplication and again after the shift, as LiteRT does
  (``SaturatingRoundingDoublingHighMul``, then ``RoundingDivideByPOT``);
* ``single``: round once at the end, as TFLite built with ``TFLITE_SINGLE_ROUNDING``;
* ``float``: multiply in float32, ties to even, as onnxruntime does.

64-bit sums of 16-bit values have their own rounding, "wide": LiteRT rounds the multiplier to 15
bits, then the product once. "double" is one product in float64, halves away from zero
(``doubles``).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

ROUNDINGS = ("tflite", "single", "float")

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Multiplier:
    """The form ``value * 2**(shift - 31)`` of ``real``, one or one per channel."""

    value: tuple[int, ...]
    shift: tuple[int, ...]
    real: tuple[float, ...]


def multiplier(reals: float | Iterable[float]) -> Multiplier:
    """Return the integer form of positive multipliers (TFLite's ``QuantizeMultiplier``)."""
    given = tuple(float(r) for r in (reals if isinstance(reals, Iterable) else (reals,)))
    pairs = [_pair(real) for real in given]
    return Multiplier(tuple(v for v, _ in pairs), tuple(s for _, s in pairs), given)


def _pair(real: float) -> tuple[int, int]:
    if real == 0.0:
        return 0, 0
    fraction, shift = math.frexp(real)
    value = math.floor(fraction * (1 << 31) + 0.5)
    if value == 1 << 31:
        value, shift = value // 2, shift + 1
    if shift < -31:
        return 0, 0
    if shift > 30:
        return (1 << 31) - 1, 30
    return value, shift


def divided(m: Multiplier, count: int) -> Multiplier:
    """Return one multiplier divided by the number of elements of a mean, as LiteRT does.

    The quotient of integers is truncated, after a shift that keeps its bits.
    """
    shift = min(count.bit_length() - 1, 32, 31 + m.shift[0])
    return Multiplier(
        ((m.value[0] << shift) // count,), (m.shift[0] - shift,), (m.real[0] / count,)
    )


def scaled(
    x: npt.ArrayLike, value: npt.ArrayLike, shift: npt.ArrayLike, rounding: str = "tflite"
) -> Ints:
    """Return ``round(x * value * 2**(shift - 31))`` for int32 ``x``."""
    x, value, shift = (np.asarray(a, np.int64) for a in (x, value, shift))
    if rounding == "single":
        right = 31 - shift
        return np.asarray((x * value + (np.int64(1) << (right - 1))) >> right)
    left, right = np.maximum(shift, 0), np.maximum(-shift, 0)
    return divided_by_power(high_product(x << left, value), right)


def high_product(a: npt.ArrayLike, b: npt.ArrayLike) -> Ints:
    """Return ``round(a * b / 2**31)``, halves up (``SaturatingRoundingDoublingHighMul``)."""
    product = np.asarray(a, np.int64) * np.asarray(b, np.int64)
    return np.asarray((product + (1 << 30)) >> 31)


def divided_by_power(x: npt.ArrayLike, exponent: npt.ArrayLike) -> Ints:
    """Return ``round(x / 2**exponent)``, halves away from zero (``RoundingDivideByPOT``)."""
    x, exponent = np.asarray(x, np.int64), np.asarray(exponent, np.int64)
    half = (np.int64(1) << exponent) >> 1
    return np.asarray((x + half - ((x < 0) & (exponent > 0))) >> exponent)


def half_away(x: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return ``x`` rounded to integers, halves away from zero, in its own precision."""
    x = np.asarray(x)
    return np.asarray(np.trunc(x + np.copysign(x.dtype.type(0.5), x)))


def scaled_wide(total: Ints, value: int, shift: int) -> Ints:
    """Return 64-bit sums times a multiplier of 15 bits, rounded once."""
    short = (value + (1 << 15)) >> 16 if value < 0x7FFF0000 else 0x7FFF
    return np.asarray((total * short + (1 << (14 - shift))) >> (15 - shift))
