"""Conversion of average pools, means and sums between ``dequantize`` and ``quantize``."""

from dataclasses import replace
from typing import Any

from tvm import relax

from tvm_serenity import compat
from tvm_serenity.kernels.records import AveragePool
from tvm_serenity.operators.average_pool_2d import to_scale
from tvm_serenity.operators.reductions import Reduction
from tvm_serenity.relax.quantize_read import Leaf, RefusedError, image_shape, shape_of
from tvm_serenity.relax.quantize_records import computed, rescaled
from tvm_serenity.relax.quantize_region import ClampedResult, Rewriter

_REDUCTIONS = {"relax.mean": "MEAN", "relax.sum": "SUM"}


MOST_FINER = 1.9
"""Largest ratio of the input's scale to the result's when an average is rescaled.

Both conversions round by half of their step, so that the result is within a step of the rounded
float result.
"""


def average_pool(rewriter: Rewriter, region: ClampedResult) -> Any:
    """Convert ``avg_pool2d``: LiteRT's if scales agree, otherwise a rescaled sum.

    LiteRT divides by the elements inside the image, a sum by those of the full window.
    """
    pool = rewriter.scope.look(region.expr)
    x = rewriter.scope.activation(pool.args[0])
    spec, made = _spec(pool, x.params.dtype, region), region.stored(shape_of(pool.ty))
    counted = not any(spec.padding) or bool(pool.attrs.count_include_pad)
    of_image = not any(spec.padding) or not counted
    if not counted and (rewriter.rounding == "float" or not x.stored.alike(made)):
        return _rescaled(rewriter, region, x, spec)
    if rewriter.rounding == "float" or not x.stored.alike(made) or not of_image:
        spec = to_scale(spec, x.stored, made, rewriter.rounding)
    return computed(rewriter, "AVERAGE_POOL_2D", lambda: spec, [x])


def _rescaled(rewriter: Rewriter, region: ClampedResult, x: Leaf, spec: AveragePool) -> Any:
    """Return an average over windows of different sizes, rescaled from ``x`` to the result."""
    if x.params.scale > MOST_FINER * region.result.scale:
        raise RefusedError(
            "an average over windows of different sizes is not supported with a result scale "
            "finer than the input's"
        )
    low, high = x.params.limits
    record = replace(spec, low=low, high=high)
    made = computed(rewriter, "AVERAGE_POOL_2D", lambda: record, [x])
    leaf = Leaf(x.expr, x.params, spec.output_shape)
    return rescaled(rewriter, region, leaf, made)


def reduction(rewriter: Rewriter, region: ClampedResult) -> Any:
    """Convert a mean or a sum over axes."""
    call = rewriter.scope.look(region.expr)
    x = rewriter.scope.activation(call.args[0])
    given = range(len(x.shape)) if call.attrs.axis is None else call.attrs.axis
    axes = tuple(sorted({int(a) % len(x.shape) for a in given}))
    kind, made = _REDUCTIONS[compat.op_name(call)], region.stored(shape_of(call.ty))
    keep = bool(call.attrs.keepdims)
    record = Reduction(kind, x.stored, made, axes, keep, region.limits, rewriter.rounding)
    return computed(rewriter, kind, lambda: record, [x])


def _spec(pool: relax.Call, dtype: str, region: ClampedResult) -> AveragePool:
    attrs = pool.attrs
    layout = str(attrs.layout)
    if layout not in ("NHWC", "NCHW") or [int(d) for d in attrs.dilation] != [1, 1]:
        raise RefusedError("average pools with dilation or of other layouts are not supported")
    window, strides = ([int(v) for v in values] for values in (attrs.pool_size, attrs.strides))
    padding = [int(p) for p in attrs.padding]
    top, left, bottom, right = padding if len(padding) == 4 else padding * 2
    return AveragePool(
        layout,
        image_shape(pool.args[0].ty),
        image_shape(pool.ty),
        dtype,
        (window[0], window[1]),
        (strides[0], strides[1]),
        (top, left, bottom, right),
        *region.limits,
        0,
    )
