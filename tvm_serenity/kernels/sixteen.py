"""Elementwise 16-bit integer kernels, as in LiteRT's reference kernels."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from tvm import te, tirx

from tvm_serenity.kernels.arithmetic import clamped, f32, i32, scaled, stored
from tvm_serenity.kernels.build import for_any, prim_func
from tvm_serenity.quantize.fixed import multiplier
from tvm_serenity.quantize.params import Affine

Shape = tuple[int, ...]


def elementwise(
    shape: Shape, source: str, value: Callable[..., Any], tables: tuple[Any, ...] = ()
) -> Any:
    """Return the kernel ``(x, *tables, result)`` of ``value(x, *tables)``, ``x`` as int32."""
    x = te.placeholder(shape, source, "x")
    out = te.compute(shape, lambda *at: value(x(*at).astype("int32"), *tables), name="out")
    return for_any(prim_func([x, *tables, out]))


def interpolated(shape: Shape) -> Any:
    """Return the kernel ``(x, samples, result)`` of a function with 513 samples."""
    samples = te.placeholder((513,), "int16", "samples")
    return elementwise(
        shape, "int16", lambda x, table: between(x, table).astype("int16"), (samples,)
    )


def between(x: tirx.Expr, samples: te.Tensor) -> Any:
    """Return the 16-bit value (as int32) interpolated between two of 513 samples."""
    index = tirx.shift_right(x, i32(7)) + i32(256)
    base = samples[index].astype("int32")
    slope = (samples[index + i32(1)].astype("int32") - base).astype("int16").astype("int32")
    part = tirx.bitwise_and(x, i32(127))
    delta = tirx.shift_right(slope * part + i32(64), i32(7))
    return (base + delta).astype("int16").astype("int32")


def logistic(shape: Shape, factor: int, shift: int) -> Any:
    """Return the kernel ``(x, samples, result)`` of the logistic function, in steps of 2**-15.

    ``factor`` and ``shift`` rescale ``x`` to steps of 1 / (3 * 4096).
    """
    samples = te.placeholder((256,), "int32", "samples")
    value = partial(logistic_of, factor=factor, shift=shift)
    return elementwise(shape, "int16", lambda x, t: value(x, t).astype("int16"), (samples,))


def tanh(shape: Shape, factor: int, shift: int) -> Any:
    """Return the kernel ``(x, samples, result)`` of tanh, in steps of 2**-15; see ``logistic``."""
    samples = te.placeholder((256,), "int32", "samples")
    value = partial(tanh_of, factor=factor, shift=shift)
    return elementwise(shape, "int16", lambda x, t: value(x, t).astype("int16"), (samples,))


def logistic_of(x: tirx.Expr, samples: Any, factor: int, shift: int) -> Any:
    """Return the logistic function of a 16-bit value (as int32), in steps of 2**-15."""
    at, size = _sized(x, factor, shift)
    inner = _sampled(size, samples, 9)
    result = tirx.Select(tirx.shift_right(size, i32(9)) >= i32(255), i32(0x7FFF << 10), inner)
    signed = tirx.Select(at >= i32(0), result + i32(1 << 9), i32((1 << 25) + (1 << 9) - 1) - result)
    return tirx.shift_right(signed, i32(10))


def tanh_of(x: tirx.Expr, samples: Any, factor: int, shift: int) -> Any:
    """Return tanh of a 16-bit value (as int32), in steps of 2**-15."""
    at, size = _sized(x, factor, shift)
    inner = _sampled(size, samples, 8)
    result = tirx.Select(tirx.shift_right(size, i32(8)) >= i32(255), i32(0xFFFF << 8), inner)
    signed = tirx.Select(
        at >= i32(0),
        result + i32((1 << 7) - (1 << 23)),
        i32((1 << 23) + (1 << 7) - 1) - result,
    )
    return tirx.shift_right(signed, i32(8))


def _sized(x: tirx.Expr, factor: int, shift: int) -> tuple[Any, Any]:
    at = _in_steps(x, factor, shift)
    return at, tirx.abs(at)


def _sampled(size: tirx.Expr, samples: Any, bits: int) -> Any:
    """Return a value interpolated between two samples that are ``2 ** bits`` steps apart."""
    index = te.min(tirx.shift_right(size, i32(bits)), i32(254))
    low = samples[index]
    rest = tirx.bitwise_and(size, i32((1 << bits) - 1))
    return tirx.shift_left(low, i32(bits)) + rest * (samples[index + i32(1)] - low)


def _in_steps(x: tirx.Expr, factor: int, shift: int) -> Any:
    half = i32((1 << shift) >> 1)
    return tirx.shift_right(x * i32(factor) + half, i32(shift))


def leaky_relu(shape: Shape, alpha: float, source: Affine, result: Affine) -> Any:
    """Return the kernel ``(x, result)`` of ``max(x, alpha * x)``."""
    above, scale = np.float32(source.scale), np.float32(result.scale)
    slope = float(above * np.float32(alpha) / scale)
    keep, below = multiplier(float(above / scale)), multiplier(abs(slope))

    def value(x: tirx.Expr) -> Any:
        x = x - i32(source.zero_point)
        under = scaled(x, below) if slope >= 0 else i32(0) - scaled(x, below)
        total = tirx.Select(x >= i32(0), scaled(x, keep), under)
        return stored(total, result.zero_point, *result.limits, result.dtype)

    return elementwise(shape, source.dtype, value)


def rescaled(shape: Shape, source: Affine, result: Affine, low: int, high: int) -> Any:
    """Return the kernel ``(x, result)`` of RELU variants: rescaling, then limits."""
    m = multiplier(float(np.float32(source.scale) / np.float32(result.scale)))

    def value(x: tirx.Expr) -> Any:
        total = scaled(x - i32(source.zero_point), m)
        return stored(total, result.zero_point, low, high, result.dtype)

    return elementwise(shape, source.dtype, value)


def absolute(shape: Shape, source: Affine, result: Affine) -> Any:
    """Return the kernel ``(x, result)`` of ABS."""
    m = multiplier(float(np.float32(source.scale) / np.float32(result.scale)))
    same = source.scale == result.scale

    def value(x: tirx.Expr) -> Any:
        size = tirx.abs(x - i32(source.zero_point))
        total = size if same else scaled(size, m)
        return stored(total, result.zero_point, *result.limits, result.dtype)

    return elementwise(shape, source.dtype, value)


def square_root(shape: Shape, source: Affine, result: Affine) -> Any:
    """Return the kernel ``(x, result)`` of truncated SQRT; negative values give the zero point."""

    def value(x: tirx.Expr) -> Any:
        real = (x - i32(source.zero_point)).astype("float32") * f32(source.scale)
        whole = (tirx.sqrt(te.max(real, f32(0.0))) / f32(result.scale)).astype("int32")
        return clamped(whole + i32(result.zero_point), *result.limits, result.dtype)

    return elementwise(shape, source.dtype, value)
