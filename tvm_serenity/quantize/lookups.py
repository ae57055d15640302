"""Tables of LiteRT's quantised functions of one value: 256 entries, or 513 with interpolation.

``lookup8`` and ``lookup16`` fill a table as ``LUTPopulate`` does: a real function in float32,
multiplied by the inverse of the result's scale, rounded with halves away from zero. The functions
of the C library are evaluated in float64 and rounded once. Tables of 256 entries are indexed by
``stored value - smallest stored value``.
"""

import math
from collections.abc import Callable
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
from tvm_serenity.quantize.gemmlowp import reciprocal
from tvm_serenity.quantize.params import Affine
from tvm_serenity.quantize.tables import centred

Array = npt.NDArray[Any]
Function = Callable[[Array], Array]
_F = np.float32


def lookup8(function: Function, source: Affine, result: Affine) -> Array:
    """Return the 256 stored results of ``function``, which maps float32 arrays."""
    low, high = result.limits
    with np.errstate(all="ignore"):
        value = function(_F(source.scale) * centred(source).astype(_F)).astype(_F)
        stored = half_away(value * (_F(1) / _F(result.scale))) + _F(result.zero_point)
    return np.clip(np.nan_to_num(stored.astype(np.float64)), low, high).astype(result.dtype)


def lookup16(
    function: Function,
    scales: tuple[float, float],
    zeros: tuple[int, int] = (0, 0),
    real: Any = np.float32,
) -> npt.NDArray[np.int16]:
    """Return the 513 samples of ``function`` over all 16-bit values, for interpolation.

    ``scales`` and ``zeros`` are those of argument and result; ``real`` is the precision.
    """
    low, high, steps = -(1 << 15), (1 << 15) - 1, 512
    scale, result_scale = (real(s) for s in scales)
    first, last = scale * real(low - zeros[0]), scale * real(high - zeros[0])
    least, most = result_scale * real(low - zeros[1]), result_scale * real(high - zeros[1])
    step = (last - first) / real(steps)
    inverse = real(high - low + 1) / (most - least)
    at = np.arange(steps).astype(real)
    with np.errstate(all="ignore"):
        value = function(first + at * step)
        middle = function(first + at * step + step / real(2))
        following = function(first + (at + real(1)) * step)
        sample = half_away(value * inverse)
        between = half_away((following * inverse + half_away(value * inverse)) / real(2))
        bias = half_away((between - half_away(middle * inverse)) / real(2))
        final = half_away(function(np.asarray([last], real)) * inverse)
    every = np.concatenate([sample - bias, final])
    return np.asarray(np.clip(np.nan_to_num(every), low, high), np.int16)


def _library(function: Callable[[Array], Array]) -> Function:
    """Return a function of the C library in its argument's precision, rounded once from float64."""

    def rounded(x: Array) -> Array:
        return np.asarray(function(x.astype(np.float64))).astype(x.dtype)

    return rounded


exp, log, tanh = _library(np.exp), _library(np.log), _library(np.tanh)
_expm1, _erfc = _library(np.expm1), _library(np.vectorize(math.erfc, otypes=[np.float64]))
erf = _library(np.vectorize(math.erf, otypes=[np.float64]))


def logistic(x: Array) -> Array:
    """Return 1 / (1 + exp(-x))."""
    one = x.dtype.type(1)
    return np.asarray(one / (one + exp(-x)))


def elu(x: Array) -> Array:
    """Return x, or exp(x) - 1 below 0."""
    return np.where(x < 0, _expm1(x), x)


def gelu(x: Array) -> Array:
    """Return x times the normal distribution function of x."""
    return np.asarray(_F(0.5) * x * _erfc(x * _F(-math.sqrt(0.5))))


def gelu_by_tanh(x: Array) -> Array:
    """Return ``gelu(x)`` elementwise, by the approximation with tanh."""
    slope = _F(math.sqrt(2 / math.pi))
    return np.asarray(_F(0.5) * x * (_F(1) + tanh(slope * (x + _F(0.044715) * x * x * x))))


def log_or(least: float) -> Function:
    """Return a logarithm that is ``least`` where it is undefined."""
    return lambda x: np.where(x <= 0, _F(least), log(np.maximum(x, _F(1e-45))))


def rsqrt_or(most: float) -> Function:
    """Return a function 1 / sqrt(x) that is ``most`` where it is undefined."""
    return lambda x: np.where(x <= 0, _F(most), _F(1) / np.sqrt(np.maximum(x, _F(1e-45))))


def clamped(source: Affine, result: Affine, low: float, high: float | None) -> Array:
    """Return the table of values rescaled and clamped to real limits: LiteRT's RELU and others."""
    m = multiplier(float(_F(source.scale) / _F(result.scale)))
    value = scaled(centred(source), m.value[0], m.shift[0]) + result.zero_point
    least, most = limits(result, low, high)
    return np.clip(value, least, most).astype(result.dtype)


def limits(result: Affine, low: float, high: float | None) -> tuple[int, int]:
    """Return the stored limits of an activation between real ``low`` and ``high``."""
    least, most = result.limits
    least = max(least, result.stored(low))
    return least, most if high is None else min(most, result.stored(high))


def absolute(source: Affine, result: Affine) -> Array:
    """Return the table of ABS."""
    value = np.abs(centred(source))
    if source.scale != result.scale:
        m = multiplier(float(_F(source.scale) / _F(result.scale)))
        value = scaled(value, m.value[0], m.shift[0])
    return np.asarray(np.clip(value + result.zero_point, *result.limits), result.dtype)


def square_root(source: Affine, result: Affine) -> Array:
    """Return the table of SQRT, which truncates; negative values give the zero point."""
    real = _F(source.scale) * centred(source).astype(_F)
    roots = np.trunc(np.sqrt(np.maximum(real, 0)) / _F(result.scale)).astype(np.int64)
    return np.asarray(np.clip(roots + result.zero_point, *result.limits), result.dtype)


def inverse_root(source: Affine, result: Affine) -> Array:
    """Return the table of RSQRT in fixed point; undefined values give the largest."""
    real = 1.0 / float(_F(math.sqrt(_F(source.scale))) * _F(result.scale))
    m = multiplier(real)
    values = []
    for x in centred(source).tolist():
        if x <= 0:
            values.append(result.limits[1])
            continue
        value, shift = inverse_root_multiplier(x)
        data = int(scaled(1, value, shift + 20))
        values.append(int(_shifted(data, m.value[0], m.shift[0] - 20)) + result.zero_point)
    return np.asarray(np.clip(values, *result.limits), result.dtype)


def _shifted(x: int, value: int, shift: int) -> int:
    left = ((x << max(shift, 0)) + (1 << 31)) % (1 << 32) - (1 << 31)  # 32 bits wrap around
    return int(divided_by_power(high_product(left, value), max(-shift, 0)))


def inverse_root_multiplier(x: int) -> tuple[int, int]:
    """Return 1 / sqrt(x) as ``value * 2**(shift - 31)`` (``GetInvSqrtQuantizedMultiplierExp``)."""
    if x <= 1:
        return (1 << 31) - 1, 0
    shift = 11
    while x >= 1 << 29:
        x, shift = x // 4, shift + 1
    pairs = (31 - x.bit_length()) // 2 - 1
    shift, x = shift - pairs, x << (2 * pairs)
    half = int(divided_by_power(x >> 1, 1))
    root = 1 << 28
    for _ in range(5):
        cube = _times8(int(high_product(high_product(root, root), root)), 6)
        product = int(high_product((1 << 28) + (1 << 27), root)) - int(high_product(half, cube))
        root = _times8(product, 3)
    root = int(high_product(root, 1518500250))
    return (root << -shift, 0) if shift < 0 else (root, -shift)


def _times8(x: int, bits: int) -> int:
    return max(-(1 << 31), min((1 << 31) - 1, x << bits))


def sigmoid_samples() -> npt.NDArray[np.int32]:
    """Return 256 samples of the logistic function at i / 24 in units of 2**-16.

    They are raised by half of the error of straight lines between them, so that the interpolation
    error is positive as often as negative; the last sample is the largest 16-bit number.
    """
    step = 1 / 24
    value = 1 / (1 + np.exp(-np.arange(256) * step))
    curvature = value * (1 - value) * (1 - 2 * value)
    samples = np.rint(65536 * (value - curvature * step * step / 16))
    samples[-1] = 65535
    return np.asarray(samples, np.int32)


def sigmoid_multiplier(scale: float, most_shift: int) -> tuple[int, int]:
    """Return multiplier and right shift that bring 16-bit values to steps of 1 / (3 * 4096).

    Powers of two of up to ``most_shift`` above 2**-12 need no rounding.
    """
    exponent = math.log2(scale)
    if abs(exponent - round(exponent)) < 1e-3 and 0 <= 12 + round(exponent) <= most_shift:
        return 3 << (12 + round(exponent)), 0
    real, shift = float(_F(scale)) * 4096.0 * 3.0, 0
    while real <= 32767.0 / 2.0 and shift <= 30:
        real, shift = real * 2.0, shift + 1
    return int(real), shift


def inverses(divisor: Affine) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return 1 / (1 + f) in Q0.31 and n for |x| = (1 + f) * 2**n, for all 8-bit values.

    0 counts as 1.
    """
    inverse, over = reciprocal(np.maximum(np.abs(centred(divisor)), 1), 31)
    return inverse.astype(np.int32), over.astype(np.int32)


def dividends(dividend: Affine) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return all 8-bit values shifted left as far as possible, and the shift: two halves of 256.

    The second half is that of the negated values, for negative divisors.
    """
    both = np.concatenate([centred(dividend), -centred(dividend)])
    magnitude = np.where(both < 0, ~both, both)
    bits = np.where(magnitude > 0, np.floor(np.log2(np.maximum(magnitude, 1))) + 1, 0)
    rooms = (31 - bits).astype(np.int64)
    return (both << rooms).astype(np.int32), rooms.astype(np.int32)
