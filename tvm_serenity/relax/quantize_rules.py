"""Rules for elementwise operators and softmax, and the table of all rules."""

from dataclasses import replace
from typing import Any

import numpy as np

from tvm_serenity import compat
from tvm_serenity.kernels import pointwise
from tvm_serenity.quantize import tables
from tvm_serenity.quantize.fixed import multiplier
from tvm_serenity.relax import quantize_function, quantize_pool
from tvm_serenity.relax.quantize_concat import concat
from tvm_serenity.relax.quantize_read import MOVES, Leaf, RefusedError, shape_of
from tvm_serenity.relax.quantize_region import Region, Rewriter, Rules
from tvm_serenity.relax.quantize_scale import look_up, rescaled
from tvm_serenity.relax.quantize_weighted import CONV, MATMUL, find, weighted


def addition(rewriter: Rewriter, region: Region) -> Any:
    """Convert ``add`` and ``subtract``, of a convolution and its bias or of two tensors."""
    if find(rewriter, region.expr)[0] is not None:
        return weighted(rewriter, region)
    pair = _pair(rewriter, region)
    if pair is None:
        return function(rewriter, region)
    spec, arguments = pair
    first, second = (s.scale for s in spec.sources)
    shift = 15 if spec.result.dtype == "int16" else 20
    if spec.result.dtype == "int16" and rewriter.rounding == "tflite":
        raise RefusedError("a sum of int16 tensors")
    twice = 2 * max(first, second)
    left, right = multiplier(first / twice), multiplier(second / twice)
    if compat.op_name(rewriter.scope.look(region.expr)) == "relax.subtract":
        right = type(right)(right.value, right.shift, (-right.real[0],))
    out = multiplier(twice / ((1 << shift) * spec.result.scale))
    return rewriter.kernel(
        "q_add", pointwise.add(pointwise.Sum(spec, left, right, out, shift)), arguments
    )


def product(rewriter: Rewriter, region: Region) -> Any:
    """Convert ``multiply`` of two tensors."""
    pair = _pair(rewriter, region)
    if pair is None:
        return function(rewriter, region)
    spec, arguments = pair
    first, second = (s.scale for s in spec.sources)
    real = float(np.float32(first) * np.float32(second)) / spec.result.scale
    if rewriter.rounding != "float":  # LiteRT divides in float32 too
        real = float(np.float32(first) * np.float32(second) / np.float32(spec.result.scale))
    return rewriter.kernel(
        "q_mul", pointwise.multiply(pointwise.Product(spec, multiplier(real))), arguments
    )


def _pair(rewriter: Rewriter, region: Region) -> tuple[pointwise.Pair, list[Any]] | None:
    """Two stored operands, or None if one is a number."""
    call = rewriter.scope.look(region.expr)
    leaves: list[Leaf] = []
    for argument in call.args[:2]:
        try:
            leaves.append(rewriter.scope.activation(argument))
        except RefusedError:
            return None
    spec = pointwise.Pair(
        (leaves[0].shape, leaves[1].shape),
        (leaves[0].params, leaves[1].params),
        region.result,
        region.low,
        region.high,
        rewriter.rounding,
    )
    return spec, [rewriter.stored(leaf) for leaf in leaves]


def softmax(rewriter: Rewriter, region: Region) -> Any:
    """Convert softmax over the last axis to TFLite's fixed-point form, or a table of floats."""
    call = rewriter.scope.look(region.expr)
    x = rewriter.scope.activation(call.args[0])
    result, least = region.result, region.result.limits[0]
    if int(call.attrs.axis) % len(x.shape) != len(x.shape) - 1:
        raise RefusedError("softmax over an axis that is not the last")
    if x.params.dtype == "int16":
        raise RefusedError("softmax of int16")
    columns = x.shape[-1]
    rows = int(np.prod(x.shape)) // columns
    source = rewriter.reshaped(rewriter.stored(x), (rows, columns))
    if rewriter.rounding == "float":
        spec = pointwise.RealSoftmax(rows, columns, x.params.dtype, result, region.low, region.high)
        powers = tables.exponentials(x.params.scale)
        arguments = [source, compat.constant(powers)]
        made = rewriter.kernel("q_softmax", pointwise.real_softmax(spec), arguments)
        return rewriter.reshaped(made, x.shape)
    steps = 1 << (16 if result.dtype == "int16" else 8)
    unit = abs(result.scale * steps - 1) <= 1e-3  # LiteRT's own tolerance
    if not unit or result.zero_point != least or not region.is_unclamped:
        raise RefusedError(f"softmax whose result is not stored in steps of 1/{steps} from 0")
    kernel = pointwise.softmax(rows, columns, x.params.dtype, result.dtype)
    table = np.asarray(tables.softmax(x.params.scale).exponentials, np.int32)
    made = rewriter.kernel("q_softmax", kernel, [source, compat.constant(table)])
    return rewriter.reshaped(made, x.shape)


def function(rewriter: Rewriter, region: Region) -> Any:
    """Convert any function of one stored value to a table, and moves to moves of integers."""
    try:
        leaf = rewriter.scope.activation(region.expr)
    except RefusedError:
        leaf = None
    if leaf is not None:
        return rescaled(rewriter, region, leaf, rewriter.stored(leaf))
    moved = rewriter.scope.call(region.expr, *MOVES)
    if moved is not None:  # of what is computed: move it as it is stored
        made = rewriter.convert(replace(region, expr=moved.args[0]))
        return rewriter.builder.emit(compat.call_like(moved, [made, *moved.args[1:]]))
    leaf = quantize_function.only_leaf(rewriter.scope, region.expr)
    if leaf is None:
        return _given(rewriter, region)
    if leaf.params.dtype == "int16" or region.result.dtype == "int16":
        raise RefusedError("a function of an int16 tensor")
    table = quantize_function.table(rewriter.scope, region.expr, leaf, region.result)
    table = np.clip(table, region.low, region.high)
    return look_up(rewriter, leaf, rewriter.stored(leaf), table, region.result)


def _given(rewriter: Rewriter, region: Region) -> Any:
    """Round a tensor that is given as float."""
    scope = rewriter.scope
    value = scope.look(region.expr)
    if compat.is_call(value) and compat.op_name(value) not in ("relax.dequantize",):
        raise RefusedError(f"no integer form of {compat.op_name(value).removeprefix('relax.')}")
    return store(rewriter, region)


def store(rewriter: Rewriter, region: Region) -> Any:
    """Round a tensor that is computed, or given, as float."""
    if compat.dtype_name(region.expr.ty) != "float32":
        raise RefusedError("a tensor that is not float32 is quantised")
    shape = shape_of(region.expr.ty)
    kernel = pointwise.store(shape, region.result, region.low, region.high, rewriter.rounding)
    source = rewriter.emitted(rewriter.rewritten(region.expr), "real")
    return rewriter.kernel("q_store", kernel, [source])


RULES = Rules(
    by_operator={
        CONV: weighted,
        MATMUL: weighted,
        "relax.add": addition,
        "relax.subtract": addition,
        "relax.multiply": product,
        "relax.concat": concat,
        "relax.nn.avg_pool2d": quantize_pool.average_pool,
        "relax.nn.max_pool2d": quantize_pool.max_pool,
        "relax.mean": quantize_pool.mean,
        "relax.sum": quantize_pool.total,
        "relax.max": quantize_pool.extreme,
        "relax.min": quantize_pool.extreme,
        "relax.nn.softmax": softmax,
    },
    other=function,
    given=store,
)
"""All rules."""
