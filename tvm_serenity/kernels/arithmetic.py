"""TIR expressions of the fixed-point arithmetic of ``tvm_serenity.quantize.fixed``."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tvm import te, tirx

from tvm_serenity.kernels.records import Requantise
from tvm_serenity.quantize.fixed import Multiplier

_LARGE = 0x7FFF0000
"""Multipliers from here on overflow when rounded to 15 bits."""
_DEAD = 24
"""Right shifts from here on belong to dead channels, whose bias may be near 2**31."""


def i32(value: int) -> Any:
    """Return a 32-bit literal."""
    return tirx.const(int(value), "int32")


def i64(value: int) -> Any:
    """Return a 64-bit literal."""
    return tirx.const(int(value), "int64")


def f32(value: float) -> Any:
    """Return the nearest 32-bit float as a literal."""
    return tirx.const(float(np.float32(value)), "float32")


def f64(value: float) -> Any:
    """Return a 64-bit float literal."""
    return tirx.const(float(value), "float64")


def high_product(a: tirx.Expr, b: tirx.Expr) -> Any:
    """Return ``round(a * b / 2**31)`` of 32-bit values; halves round up."""
    product = a.astype("int64") * b.astype("int64")
    return tirx.shift_right(product + i64(1 << 30), i64(31)).astype("int32")


def divided_by_power(x: tirx.Expr, exponent: int) -> Any:
    """Return ``round(x / 2**exponent)`` for a constant exponent; halves round away from zero.

    For a large exponent any ``x`` is allowed; otherwise adding half a unit must not overflow.
    """
    if exponent == 0:
        return x
    if exponent >= _DEAD:
        return _divided(x, i32(exponent), False)
    return tirx.shift_right(
        x + i32(1 << (exponent - 1)) + tirx.shift_right(x, i32(31)), i32(exponent)
    )


def _divided(x: tirx.Expr, exponent: tirx.Expr, may_be_zero: bool) -> Any:
    """Return ``round(x / 2**exponent)`` for an exponent up to 31, without overflow."""
    below = tirx.shift_right(x, i32(31))
    last = exponent - i32(1)
    if may_be_zero:
        below, last = below * tirx.min(exponent, i32(1)), tirx.max(last, i32(0))
    half = tirx.shift_right(x + below, last)
    rounded = tirx.shift_right(half + i32(1), i32(1))
    return tirx.Select(exponent > i32(0), rounded, x) if may_be_zero else rounded


def scaled(x: tirx.Expr, m: Multiplier, rounding: str = "tflite") -> Any:
    """Return 32-bit ``x`` times one multiplier; with rounding "wide", ``x`` has 64 bits."""
    if rounding == "float":
        return tirx.nearbyint(
            x.astype("float32") * tirx.const(np.float32(m.real[0]).item(), "float32")
        ).astype("int32")
    if rounding == "double":
        return _in_double(x, tirx.const(m.real[0], "float64"))
    value, shift = m.value[0], m.shift[0]
    if rounding == "wide":
        factor = (value + (1 << 15)) >> 16 if value < _LARGE else 0x7FFF
        product = x.astype("int64") * i64(factor) + i64(1 << (14 - shift))
        return tirx.shift_right(product, i64(15 - shift)).astype("int32")
    if rounding == "single":
        right = 31 - shift
        product = x.astype("int64") * i64(value)
        return tirx.shift_right(product + i64(1 << (right - 1)), i64(right)).astype("int32")
    left = tirx.shift_left(x, i32(shift)) if shift > 0 else x
    return divided_by_power(high_product(left, i32(value)), max(-shift, 0))


def _in_double(x: tirx.Expr, real: tirx.Expr) -> Any:
    """Return ``x * real`` rounded in float64, halves away from zero."""
    product = x.astype("float64") * real
    whole = tirx.trunc(product)
    rest = tirx.abs(product - whole)
    one = tirx.Select(product < 0, tirx.const(-1.0, "float64"), tirx.const(1.0, "float64"))
    nearest = whole + tirx.Select(rest >= tirx.const(0.5, "float64"), one, one * 0)
    limit = tirx.const(float((1 << 31) - 1), "float64")
    return te.max(te.min(nearest, limit), -limit).astype("int32")


def clamped(x: tirx.Expr, low: int, high: int, dtype: str) -> Any:
    """Return 32-bit ``x`` clamped to two limits, as ``dtype``."""
    return te.max(te.min(x, i32(high)), i32(low)).astype(dtype)


def stored(x: tirx.Expr, zero_point: int, low: int, high: int, dtype: str) -> Any:
    """Return ``x + zero_point``, clamped and narrowed."""
    return clamped(x + i32(zero_point) if zero_point else x, low, high, dtype)


def finished(spec: Requantise, buffers: Sequence[Any]) -> Callable[[Any, Any], Any]:
    """Return ``(sum, channel) -> stored value``, which reads its constants from ``buffers``."""

    def of(x: tirx.Expr, channel: tirx.Var | None) -> Any:
        whole = _requantised(spec, x, buffers, channel)
        return stored(whole, spec.zero_point, spec.low, spec.high, spec.dtype)

    return of


def _requantised(
    spec: Requantise, x: tirx.Expr, buffers: Sequence[Any], channel: tirx.Var | None
) -> Any:
    if not spec.per_channel:
        return scaled(x, spec.multiplier, spec.rounding)
    if spec.rounding == "float":
        return tirx.nearbyint(x.astype("float32") * buffers[0][channel]).astype("int32")
    if spec.rounding == "double":
        return _in_double(x, buffers[0][channel])
    value, shift = buffers[0][channel], buffers[1][channel].astype("int32")
    if spec.rounding == "single":
        right = i64(31) - shift.astype("int64")
        product = x.astype("int64") * value.astype("int64")
        half = tirx.shift_left(i64(1), right - i64(1))
        return tirx.shift_right(product + half, right).astype("int32")
    if spec.rounding == "wide":
        factor = tirx.Select(
            value < i32(_LARGE), tirx.shift_right(value + i32(1 << 15), i32(16)), i32(0x7FFF)
        )
        right = i64(15) - shift.astype("int64")
        half = tirx.shift_left(i64(1), right - i64(1))
        product = x.astype("int64") * factor.astype("int64") + half
        return tirx.shift_right(product, right).astype("int32")
    shifts = spec.multiplier.shift
    left = tirx.shift_left(x, te.max(shift, i32(0))) if max(shifts) > 0 else x
    right = te.max(-shift, i32(0)) if max(shifts) > 0 else -shift
    return _divided(high_product(left, value), right, max(shifts) >= 0)
