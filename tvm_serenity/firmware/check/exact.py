"""Compute integer kernels exactly in numpy, as a second reference beside TVM's kernels.

One of our kernels may be derived from the TVM kernel that it is compared with, and share its
faults. This module computes the result from the spec that both were made from: sums in numpy,
requantized by ``quantize.exact``, pools and elementwise pairs by the references of their operators.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tvm_serenity.firmware.program import Array
from tvm_serenity.kernels.records import (
    AveragePool,
    Convolution,
    Dense,
    Lookup,
    Mean,
    Product,
    Requantise,
    Sum,
    WindowSums,
)
from tvm_serenity.operators import operator
from tvm_serenity.quantize.exact import ONCE, TWICE, WIDE, multiplied

Sums = npt.NDArray[np.float64]
"""Integers below 2**53 in float64, which matrix products add exactly."""


def meaning(spec: Any, given: Sequence[Array]) -> Array | None:
    """Return the exact result of a kernel made from ``spec``; None for an unknown spec.

    ``given`` are all parameters but the result: inputs, weights, bias, tables.
    """
    found = _MEANINGS.get(type(spec))
    return None if found is None else found(spec, given)


def finished(total: Array, spec: Requantise) -> Array | None:
    """Return sums (channels last) requantized; None if the rounding is in float."""
    if spec.rounding not in (TWICE, ONCE, WIDE, "double"):
        return None
    m = spec.multiplier
    if spec.rounding == "double":
        product = total * np.asarray(m.real)
        whole = np.trunc(product)
        made: Array = whole + np.sign(product) * (np.abs(product - whole) >= 0.5)
    else:
        made, _ = multiplied(total.astype(np.int64), m.value, m.shift, spec.rounding)
    stored = np.clip(made + spec.zero_point, spec.low, spec.high)
    return np.asarray(stored.astype(spec.dtype))


def _convolution(spec: Convolution, given: Sequence[Array]) -> Array | None:
    count = len(spec.pieces)
    weights, bias = given[count : count + 2]
    order = "NHWC" if spec.layout == "NHWC" else "NCHW"
    images = [np.moveaxis(x, order.index("C"), 3) for x in given[:count]]
    total = _sums(spec, np.concatenate(images, axis=3), weights) + bias
    made = finished(total, spec.requantise)
    return None if made is None else np.moveaxis(made, 3, order.index("C"))


def _sums(spec: WindowSums, image: Array, weights: Array) -> Sums:
    """Return the sums of an NHWC image under each window."""
    top, left, bottom, right = spec.padding
    border = ((0, 0), (top, bottom), (left, right), (0, 0))
    padded = np.pad(image, border, constant_values=spec.input_zero).astype(np.float64)
    w = weights.astype(np.float64) - spec.weight_zero
    shape = spec.sizes(spec.output_shape)
    total = np.zeros(shape)
    (sy, sx), (dy, dx) = spec.strides, spec.dilation
    for ky in range(w.shape[0]):
        for kx in range(w.shape[1]):
            rows = slice(ky * dy, ky * dy + (shape[1] - 1) * sy + 1, sy)
            columns = slice(kx * dx, kx * dx + (shape[2] - 1) * sx + 1, sx)
            total += _tap(spec, padded[:, rows, columns], w[ky, kx])
    return total


def _tap(spec: WindowSums, pixels: Sums, w: Sums) -> Sums:
    """Return what one position of the window adds to the sums."""
    if spec.depthwise:
        return np.repeat(pixels, spec.channels // pixels.shape[3], axis=3) * w
    if spec.groups == 1:
        return np.asarray(pixels @ w)
    within, each = w.shape[0], spec.channels // spec.groups
    parts = [
        pixels[..., g * within : (g + 1) * within] @ w[:, g * each : (g + 1) * each]
        for g in range(spec.groups)
    ]
    return np.concatenate(parts, axis=3)


def _dense(spec: Dense, given: Sequence[Array]) -> Array | None:
    x, weights, bias = given[:3]
    product = x.astype(np.float64) @ (weights.astype(np.float64) - spec.weight_zero)
    return finished(product + bias, spec.requantise)


def _mean(spec: Mean, given: Sequence[Array]) -> Array | None:
    centred = given[0].astype(np.int64) - spec.zero_point
    return finished(centred.sum(spec.axes, keepdims=spec.keep), spec.requantise)


def _lookup(spec: Lookup, given: Sequence[Array]) -> Array:
    x, table = given
    return np.asarray(table[x.astype(np.int64) - int(np.iinfo(spec.source).min)])


def _pool(spec: AveragePool, given: Sequence[Array]) -> Array | None:
    if spec.requantise is not None and spec.requantise.rounding != TWICE:
        return None
    return _by("AVERAGE_POOL_2D", spec, given)


def _pair(spec: Sum | Product, given: Sequence[Array]) -> Array | None:
    if spec.pair.rounding != TWICE:
        return None
    return _by("ADD" if isinstance(spec, Sum) else "MUL", spec, given)


def _by(kind: str, spec: Any, given: Sequence[Array]) -> Array:
    reference = operator(kind).integers.reference
    assert reference is not None
    return np.asarray(reference(spec, *given))


_MEANINGS: dict[type[Any], Callable[[Any, Sequence[Array]], Array | None]] = {
    AveragePool: _pool,
    Convolution: _convolution,
    Dense: _dense,
    Lookup: _lookup,
    Mean: _mean,
    Product: _pair,
    Sum: _pair,
}
