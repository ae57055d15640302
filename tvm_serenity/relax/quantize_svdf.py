"""The rule for SVDF's sums: of the weighted input, and of the weighted state of each unit."""

from typing import Any

import numpy as np
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.kernels.records import Requantise
from tvm_serenity.kernels.svdf import FilterSum, filters
from tvm_serenity.quantize.fixed import multiplier
from tvm_serenity.relax.quantize_read import RefusedError, Scope
from tvm_serenity.relax.quantize_region import Region, Rewriter


def filtered(scope: Scope, expr: relax.Expr) -> tuple[Any, Any] | None:
    """Return the product and the bias (or None) of ``sum(x * weights, -1) [+ bias]``."""
    bias = None
    total = scope.call(expr, "relax.add")
    if total is not None:
        expr, bias = total.args
    call = scope.call(expr, "relax.sum")
    product = None if call is None else scope.call(call.args[0], "relax.multiply")
    if call is None or product is None or bool(call.attrs.keepdims):
        return None
    rank = len(product.ty.shape.values)
    axes = [int(a) % rank for a in call.attrs.axis or ()]
    return (product, bias) if rank == 3 and axes == [2] else None


def filter_sum(rewriter: Rewriter, region: Region) -> Any:
    """Convert ``sum(values * weights, -1) [+ bias]`` with constant weights and bias."""
    found = filtered(rewriter.scope, region.expr)
    if found is None:
        raise RefusedError("a sum over an axis")
    product, bias = found
    values = rewriter.scope.activation(product.args[0])
    weight = rewriter.scope.weight(product.args[1])
    scales, zeros = weight.per_channel(1)
    if (scales != scales[0]).any() or zeros.any():
        raise RefusedError("a sum weighted with a scale a unit, or an offset")
    data = np.ascontiguousarray(weight.data[0])
    units, inputs = data.shape
    offset = np.zeros(units, np.int64)
    if bias is not None:
        offset = rewriter.scope.weight(bias).data.reshape(-1).astype(np.int64)
    offset = offset - values.params.zero_point * data.astype(np.int64).sum(axis=1)
    result = region.result
    real = values.params.scale * scales[0] / result.scale
    finish = Requantise(
        multiplier(real),
        result.zero_point,
        region.low,
        region.high,
        result.dtype,
        rewriter.rounding,
    )
    spec = FilterSum(
        batch=values.shape[0],
        units=units,
        inputs=inputs,
        shared=values.shape[1] == 1 < units,
        dtype=values.params.dtype,
        weight_dtype=str(data.dtype),
        requantise=finish,
    )
    constants = [compat.constant(array) for array in (data, offset.astype(np.int32))]
    return rewriter.kernel("q_svdf", filters(spec), [rewriter.stored(values), *constants])
