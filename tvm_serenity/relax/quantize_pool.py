"""Rules for average pooling and means."""

from dataclasses import replace
from typing import Any

import numpy as np
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.kernels import pooling
from tvm_serenity.kernels.records import Requantise
from tvm_serenity.quantize.fixed import divided, multiplier
from tvm_serenity.relax.quantize_read import Leaf, RefusedError, image_shape, shape_of
from tvm_serenity.relax.quantize_region import Region, Rewriter
from tvm_serenity.relax.quantize_scale import rescaled


def average_pool(rewriter: Rewriter, region: Region) -> Any:
    """Convert ``avg_pool2d`` of dequantised values; halves to even unless scales agree."""
    pool = rewriter.scope.look(region.expr)
    x = rewriter.scope.activation(pool.args[0])
    spec = _spec(pool, x.params.dtype, region.low, region.high)
    same = x.params.scale == region.result.scale and x.params.dtype == region.result.dtype
    if rewriter.rounding != "float" and same and x.params.zero_point == region.result.zero_point:
        kernel = pooling.average_pool(spec)
    else:
        if any(spec.padding) and not bool(pool.attrs.count_include_pad):
            raise RefusedError("an average over windows of different sizes, to another scale")
        real = x.params.scale / (region.result.scale * spec.window[0] * spec.window[1])
        finish = _finish(region, real, rewriter.rounding)
        kernel = pooling.average_pool(
            replace(spec, zero_point=x.params.zero_point, requantise=finish)
        )
    return rewriter.kernel("q_avg_pool", kernel, [rewriter.stored(x)])


def max_pool(rewriter: Rewriter, region: Region) -> Any:
    """Convert ``max_pool2d``: the largest stored value, which is the largest real one."""
    pool = rewriter.scope.look(region.expr)
    x = rewriter.scope.activation(pool.args[0])
    moved = rewriter.builder.emit(compat.call_like(pool, [rewriter.stored(x)]), "max_pool")
    return rescaled(rewriter, region, Leaf(moved, x.params, shape_of(pool.ty)), moved)


def extreme(rewriter: Rewriter, region: Region) -> Any:
    """Convert ``max`` and ``min`` over axes: those of stored values, in their own scale."""
    call = rewriter.scope.look(region.expr)
    x = rewriter.scope.activation(call.args[0])
    found = rewriter.builder.emit(compat.call_like(call, [rewriter.stored(x)]), region.name)
    return rescaled(rewriter, region, Leaf(found, x.params, shape_of(call.ty)), found)


def mean(rewriter: Rewriter, region: Region) -> Any:
    """Convert ``mean``: the sum times a multiplier that is divided by the count."""
    call = rewriter.scope.look(region.expr)
    x = rewriter.scope.activation(call.args[0])
    axes = _axes(call, x)
    return _sum(rewriter, region, x, axes, int(np.prod([x.shape[a] for a in axes])))


def total(rewriter: Rewriter, region: Region) -> Any:
    """Convert ``sum`` over axes."""
    call = rewriter.scope.look(region.expr)
    x = rewriter.scope.activation(call.args[0])
    return _sum(rewriter, region, x, _axes(call, x), 1)


def _axes(call: relax.Call, x: Leaf) -> tuple[int, ...]:
    axes = range(len(x.shape)) if call.attrs.axis is None else call.attrs.axis
    return tuple(sorted({int(a) % len(x.shape) for a in axes}))


def _sum(rewriter: Rewriter, region: Region, x: Leaf, axes: tuple[int, ...], count: int) -> Any:
    call = rewriter.scope.look(region.expr)
    ratio = x.params.scale / region.result.scale
    finish = _finish(region, ratio / count, rewriter.rounding)
    if count > 1 and rewriter.rounding != "float":
        finish = replace(finish, multiplier=divided(multiplier(ratio), count))
    keep, zero = bool(call.attrs.keepdims), x.params.zero_point
    spec = pooling.Mean(x.shape, axes, keep, x.params.dtype, zero, finish)
    return rewriter.kernel("q_mean", pooling.mean(spec), [rewriter.stored(x)])


def _finish(region: Region, real: float, rounding: str) -> Requantise:
    result = region.result
    return Requantise(
        multiplier(real), result.zero_point, region.low, region.high, result.dtype, rounding
    )


def _spec(pool: relax.Call, dtype: str, low: int, high: int) -> pooling.AveragePool:
    attrs = pool.attrs
    layout = str(attrs.layout)
    if layout not in ("NHWC", "NCHW") or [int(d) for d in attrs.dilation] != [1, 1]:
        raise RefusedError("an average pool that is dilated or of another layout")
    window, strides = ([int(v) for v in values] for values in (attrs.pool_size, attrs.strides))
    padding = [int(p) for p in attrs.padding]
    top, left, bottom, right = padding if len(padding) == 4 else padding * 2
    return pooling.AveragePool(
        layout,
        image_shape(pool.args[0].ty),
        image_shape(pool.ty),
        dtype,
        (window[0], window[1]),
        (strides[0], strides[1]),
        (top, left, bottom, right),
        low,
        high,
        0,
    )
