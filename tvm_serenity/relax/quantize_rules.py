"""The conversion rule of each float operator between ``dequantize`` and ``quantize``.

A rule reads a region as the record of an operator; the operator's file defines the computation.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from tvm_serenity import compat
from tvm_serenity.kernels import pointwise, sixteen
from tvm_serenity.operators.concatenation import joined
from tvm_serenity.operators.functions import Function, looked_up
from tvm_serenity.operators.scene import Stored
from tvm_serenity.operators.softmax import Softmax, softmax_of
from tvm_serenity.relax import quantize_function
from tvm_serenity.relax.bindings import emitted
from tvm_serenity.relax.calls import Writer
from tvm_serenity.relax.quantize_moves import again
from tvm_serenity.relax.quantize_pairs import addition, chosen, larger, matmul, prelu, product
from tvm_serenity.relax.quantize_pool import average_pool, reduction
from tvm_serenity.relax.quantize_read import Leaf, RefusedError, name_of, shape_of
from tvm_serenity.relax.quantize_records import (
    activation,
    as_result,
    computed,
    joined_parts,
    rescaled,
    turned,
)
from tvm_serenity.relax.quantize_region import ClampedResult, Rewriter, Rules
from tvm_serenity.relax.quantize_resize import bilinear_of
from tvm_serenity.relax.quantize_weighted import CONV, MATMUL, TRANSPOSED, weighted

MOST_FINER = 1.25
"""Largest ratio of scales when a resized image is rescaled to a finer scale.

Resizing rounds by at most 3/4 of its step (weights in 1/1024 contribute 1/4), then rescaling by
half a step: the result stays within two steps of the rounded float result.
"""


def concat(rewriter: Rewriter, region: ClampedResult) -> Any:
    """Convert a concatenation of quantised tensors."""
    call = rewriter.scope.look(region.expr)
    leaves = [rewriter.scope.activation(part) for part in joined_parts(rewriter, call)]
    if not region.is_unclamped:
        raise RefusedError("a concatenation with a fused activation is not supported")
    made, axis, values = region.stored(shape_of(call.ty)), int(call.attrs.axis), None
    sources = [leaf.stored for leaf in leaves]
    if region.result.dtype == "int16":  # LiteRT only joins int16 tensors of one scale
        values = [
            rewriter.stored(leaf)
            if leaf.stored.alike(region.stored(leaf.shape))
            else as_result(rewriter, region, leaf)
            for leaf in leaves
        ]
        sources = [region.stored(leaf.shape) for leaf in leaves]
    rounding = rewriter.rounding
    return computed(
        rewriter, "CONCATENATION", lambda: joined(sources, made, axis, rounding), leaves, values
    )


def softmax(rewriter: Rewriter, region: ClampedResult) -> Any:
    """Convert softmax along the last axis."""
    call = rewriter.scope.look(region.expr)
    x = rewriter.scope.activation(call.args[0])
    axes = list(range(len(x.shape)))
    axes.append(axes.pop(int(call.attrs.axis)))
    shape = tuple(x.shape[a] for a in axes)
    op = Softmax(
        *(Stored(shape, x.params), region.stored(shape)), 1.0, region.limits, rewriter.rounding
    )
    value = turned(rewriter, rewriter.stored(x), axes)
    made = computed(rewriter, "SOFTMAX", lambda: softmax_of(op), [x], [value])
    return turned(rewriter, made, [axes.index(a) for a in range(len(axes))])


def resized(rewriter: Rewriter, region: ClampedResult) -> Any:
    """Convert bilinear resizing: the scale stays, weights are multiples of 1/1024."""
    call = rewriter.scope.look(region.expr)
    attrs = call.attrs
    if str(attrs.method) == "nearest_neighbor":
        return function(rewriter, region)
    x = rewriter.scope.activation(call.args[0])
    spec = bilinear_of(attrs, x, shape_of(call.ty))
    if x.params.scale > MOST_FINER * region.result.scale:
        raise RefusedError(
            "image resizing is not supported with a result scale finer than the input's"
        )
    axes = [str(attrs.layout).index(axis) for axis in "NHWC"]
    value = turned(rewriter, rewriter.stored(x), axes)
    made = computed(rewriter, "RESIZE_BILINEAR", lambda: spec, [x], [value])
    made = turned(rewriter, made, ["NHWC".index(axis) for axis in str(attrs.layout)])
    leaf = Leaf(x.expr, x.params, shape_of(call.ty))
    if region.is_unclamped and x.stored.alike(region.stored(x.shape)):
        return made
    return rescaled(rewriter, region, leaf, made)


def function(rewriter: Rewriter, region: ClampedResult) -> Any:
    """Convert a function of one stored value to a table, and moves to integer moves."""
    scope = rewriter.scope
    leaf = activation(rewriter, region.expr)
    if leaf is not None:
        return rescaled(rewriter, region, leaf, rewriter.stored(leaf))
    moved = scope.moved(region.expr)
    if moved is not None:  # move the stored value
        made = rewriter.convert(replace(region, expr=moved.args[0]))
        others = [rewriter.rewritten(argument) for argument in moved.args[1:]]
        moved = compat.call_like(moved, [moved.args[0], *others])
        return rewriter.builder.emit(again(moved, made, region.result, region.limits))
    leaf = quantize_function.only_leaf(scope, region.expr)
    if leaf is None:
        return _given(rewriter, region)
    dtype, found = leaf.params.dtype, None
    if dtype == region.result.dtype:
        found = quantize_function.known(scope, region.expr, dtype, rewriter.rounding)
    if found is not None:
        kind, parameter = found
        op = Function(leaf.stored, region.stored(leaf.shape), parameter, region.limits)
        return computed(rewriter, kind, lambda: op, [leaf])
    if "int16" in (leaf.params.dtype, region.result.dtype):
        return _sampled(rewriter, region, leaf)
    table = quantize_function.table(scope, region.expr, leaf, region.result)
    table = np.clip(table, region.low, region.high)
    value = rewriter.stored(leaf)
    return looked_up("q_table", leaf.stored, table, value, Writer(rewriter.builder))


def _sampled(rewriter: Rewriter, region: ClampedResult, leaf: Leaf) -> Any:
    """Return the expression of an int16 function: a kernel that interpolates between samples."""
    if not region.is_unclamped:
        raise RefusedError("int16 functions with an activation are not supported")
    found = quantize_function.samples(rewriter.scope, region.expr, leaf, region.result)
    kernel, value = sixteen.interpolated(leaf.shape), rewriter.stored(leaf)
    return Writer(rewriter.builder).kernel("q_samples", kernel, value, found)


def _given(rewriter: Rewriter, region: ClampedResult) -> Any:
    """Return the quantisation of a tensor that is given as float."""
    scope = rewriter.scope
    value = scope.look(region.expr)
    if compat.is_call(value) and compat.op_name(value) not in ("relax.dequantize",):
        raise RefusedError(f"{name_of(value)} has no integer form")
    return store(rewriter, region)


def store(rewriter: Rewriter, region: ClampedResult) -> Any:
    """Convert the quantisation of a tensor that is computed, or given, as float."""
    if compat.dtype_name(region.expr.ty) != "float32":
        raise RefusedError("only float32 tensors can be quantised")
    shape = shape_of(region.expr.ty)
    kernel = pointwise.store(shape, region.result, region.low, region.high, rewriter.rounding)
    source = emitted(rewriter.builder, rewriter.rewritten(region.expr), "real")
    return Writer(rewriter.builder).kernel("q_store", kernel, source)


REGIONS = Rules(
    by_operator={
        CONV: weighted,
        TRANSPOSED: weighted,
        MATMUL: matmul,
        "relax.add": addition,
        "relax.subtract": addition,
        "relax.multiply": product,
        "relax.maximum": larger,
        "relax.minimum": larger,
        "relax.nn.prelu": prelu,
        "relax.concat": concat,
        "relax.nn.avg_pool2d": average_pool,
        "relax.mean": reduction,
        "relax.sum": reduction,
        "relax.nn.softmax": softmax,
        "relax.where": chosen,
        "relax.image.resize2d": resized,
    },
    other=function,
)
"""Rules for modules whose quantised operators are float operators between conversions."""

FILES = Rules(by_operator={}, other=store)
"""Rules for ``.tflite`` files, whose quantised operators are integers already."""
