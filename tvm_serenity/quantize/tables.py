"""Functions of one 8-bit value as tables of 256 entries, rounded as TFLite's reference kernels.

A table is indexed by ``stored value - smallest stored value``. Logistic and tanh are tables in
LiteRT as well; the others follow its fixed-point code step by step, evaluated here once.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tvm_serenity.quantize.fixed import (
    divided_by_power,
    half_away,
    high_product,
    multiplier,
    scaled,
)
from tvm_serenity.quantize.gemmlowp import exp_on_negative
from tvm_serenity.quantize.params import Affine

Array = npt.NDArray[Any]


def centred(source: Affine) -> npt.NDArray[np.int64]:
    """Return all stored values minus the zero point."""
    low, high = source.limits
    return np.arange(low, high + 1) - source.zero_point


def from_real(function: Callable[[Array], Array], source: Affine, result: Affine) -> Array:
    """Return the table of ``function`` evaluated in float32 and rounded, halves away from zero."""
    real = np.float32(source.scale) * centred(source).astype(np.float32)
    value = np.asarray(function(real), np.float32)
    return _stored(half_away(value / np.float32(result.scale)), result)


def rescaled(
    source: Affine, result: Affine, low: int, high: int, rounding: str = "tflite"
) -> Array:
    """Return the table that brings values to another scale, clamped to ``low``..``high``."""
    if rounding == "float":
        real = np.float32(source.scale) * centred(source).astype(np.float32)
        value = np.rint(real / np.float32(result.scale)).astype(np.int64)
    else:
        m = multiplier(source.scale / result.scale)
        value = scaled(centred(source), m.value[0], m.shift[0], rounding)
    return _stored(value, result, low, high)


def concatenated(source: Affine, result: Affine, rounding: str = "tflite") -> Array:
    """Return the table for an input of a concat, as ``ConcatenationWithScaling``: in float32."""
    if rounding == "float":
        return rescaled(source, result, *result.limits, rounding)
    low, high = source.limits
    scale = np.float32(source.scale) * (np.float32(1) / np.float32(result.scale))
    bias = np.float32(-source.zero_point) * scale
    value = np.arange(low, high + 1).astype(np.float32) * scale + bias
    return _stored(half_away(value), result)


def leaky_relu(alpha: float, source: Affine, result: Affine) -> Array:
    """Return the table of ``max(x, alpha * x)``, as ``QuantizeLeakyRelu``."""
    x = centred(source)
    ratio = np.float32(source.scale) / np.float32(result.scale)
    slope = np.float32(source.scale) * np.float32(alpha) / np.float32(result.scale)
    keep, scale = multiplier(float(ratio)), multiplier(abs(float(slope)))
    below = scaled(x, scale.value[0], scale.shift[0])
    if slope < 0:
        below = scaled(x, -scale.value[0], scale.shift[0])
    return _stored(np.where(x >= 0, scaled(x, keep.value[0], keep.shift[0]), below), result)


def hard_swish(source: Affine, result: Affine) -> Array:
    """Return the table of ``x * relu6(x + 3) / 6``, as ``reference_ops::HardSwish``."""
    hires = np.float32(1 / 128) * np.float32(source.scale)
    out = multiplier(float(hires / np.float32(result.scale)))
    gate = multiplier(float(hires / (np.float32(3) / np.float32(32768))))
    x = centred(source) * 128
    preshift = _high_product16(x, _high_half(out.value[0]))
    shift = gate.shift[0]
    value = _saturated(x << (shift - 1)) if shift > 0 else x
    value = _high_product16(value, _high_half(gate.value[0]))
    value = _saturated(value << 1) if shift > 0 else divided_by_power(value, -shift)
    value = (value + (1 << 15)) >> 1
    product = np.trunc(value * preshift / (1 << 15)).astype(np.int64)
    return _stored(divided_by_power(_saturated(product), -out.shift[0]), result)


def _high_half(value: int) -> int:
    return 0x7FFF if value >= 0x7FFFFFFF - (1 << 15) else (value + (1 << 15)) >> 16


def _high_product16(a: npt.ArrayLike, b: int) -> npt.NDArray[np.int64]:
    return _saturated((np.asarray(a, np.int64) * b + (1 << 14)) >> 15)


def _saturated(x: npt.ArrayLike) -> npt.NDArray[np.int64]:
    return np.asarray(np.clip(x, -(1 << 15), (1 << 15) - 1))


def _stored(
    centred_value: npt.ArrayLike, result: Affine, low: int | None = None, high: int | None = None
) -> Array:
    limits = result.limits
    least, most = limits[0] if low is None else low, limits[1] if high is None else high
    value = np.asarray(centred_value, np.float64) + result.zero_point
    return np.clip(value, least, most).astype(result.dtype)


@dataclass(frozen=True)
class SoftmaxTable:
    """The table of softmax: ``exponentials[d]`` is exp(-d * beta * scale) in Q0.31."""

    exponentials: tuple[int, ...]


def softmax(scale: float, beta: float = 1.0) -> SoftmaxTable:
    """Return exp of all differences of 8-bit values, as gemmlowp's fixed-point code has it."""
    x, least = differences(scale, beta)
    kept = -np.arange(256) >= least
    return SoftmaxTable(tuple(int(e) for e in np.where(kept, exp_on_negative(x), 0)))


_COUNTED = 1 << 11
"""The least exponential that softmax distinguishes from 0.

Sums take each exponential's nearest multiple of 2**12, and a result of at most 16 bits is at most
its 2**15th part.
"""


def without_tail(exponentials: Sequence[int]) -> npt.NDArray[np.int32]:
    """Return the exponentials with one 0 in place of the last ones, which change no result."""
    values = np.asarray(exponentials, np.int32)
    counted = np.where(values >= _COUNTED, values, 0)
    return counted[: int(np.flatnonzero(counted).max(initial=-1)) + 2]


def differences(scale: float, beta: float = 1.0) -> tuple[npt.NDArray[np.int64], int]:
    """Return -d * beta * scale in Q5.26 for all differences d, and the least -d that counts."""
    real = min(beta * scale * (1 << 26), float((1 << 31) - 1))
    m = multiplier(real)
    value, shift = m.value[0], m.shift[0]
    least = -math.floor(((1 << 5) - 1) * (1 << 26) / 2**shift)
    d = -np.arange(256)
    x = high_product(np.clip(d * (1 << max(shift, 0)), -(1 << 31), (1 << 31) - 1), value)
    if shift < 0:
        x = divided_by_power(x, -shift)
    return x, least


def exponentials(scale: float) -> npt.NDArray[np.float32]:
    """Return exp of all differences of 8-bit values, in float32: ``exp(-d * scale)`` at d."""
    return np.asarray(np.exp(-np.arange(256) * scale), np.float32)
