"""What each float operator between ``dequantize`` and ``quantize`` is in integers.

A rule reads a region into the record of an operator, whose file says what it computes.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.kernels import pointwise
from tvm_serenity.kernels.records import Pair
from tvm_serenity.operators.add import sum_of
from tvm_serenity.operators.batch_matmul import matmul_of
from tvm_serenity.operators.concatenation import joined
from tvm_serenity.operators.functions import Function, looked_up
from tvm_serenity.operators.mul import product_of
from tvm_serenity.operators.prelu import prelu_of
from tvm_serenity.operators.quantize import Rescaling
from tvm_serenity.operators.softmax import Softmax, softmax_of
from tvm_serenity.operators.stored import OnStored
from tvm_serenity.relax import quantize_function
from tvm_serenity.relax.calls import Writer
from tvm_serenity.relax.quantize_moves import again
from tvm_serenity.relax.quantize_pool import average_pool, reduction
from tvm_serenity.relax.quantize_read import Leaf, RefusedError, name_of, shape_of
from tvm_serenity.relax.quantize_records import computed, joined_parts
from tvm_serenity.relax.quantize_region import ClampedResult, Rewriter, Rules
from tvm_serenity.relax.quantize_weighted import CONV, MATMUL, find, weighted


def addition(rewriter: Rewriter, region: ClampedResult) -> Any:
    """Convert ``add`` and ``subtract``, of a convolution and its bias or of two tensors."""
    if find(rewriter, region.expr)[0] is not None:
        return weighted(rewriter, region)
    call = rewriter.scope.look(region.expr)
    minus = compat.op_name(call) == "relax.subtract"
    leaves = _two(rewriter, call)
    if leaves is None:
        return function(rewriter, region)
    kind, pair = "SUB" if minus else "ADD", _pair(rewriter, region, leaves)
    return computed(rewriter, kind, lambda: sum_of(pair, minus), leaves)


def product(rewriter: Rewriter, region: ClampedResult) -> Any:
    """Convert ``multiply`` of two tensors."""
    leaves = _two(rewriter, rewriter.scope.look(region.expr))
    if leaves is None:
        return function(rewriter, region)
    pair = _pair(rewriter, region, leaves)
    return computed(rewriter, "MUL", lambda: product_of(pair), leaves)


def larger(rewriter: Rewriter, region: ClampedResult) -> Any:
    """Convert ``maximum`` and ``minimum`` of two tensors: of stored values in the same scale."""
    call = rewriter.scope.look(region.expr)
    leaves = _two(rewriter, call)
    if leaves is None:
        return function(rewriter, region)
    kind = compat.op_name(call).removeprefix("relax.")
    values = [rescaled(rewriter, region, leaf, rewriter.stored(leaf)) for leaf in leaves]
    op = OnStored(kind, kind.upper())
    return computed(rewriter, op.kind, lambda: op, leaves, values)


def prelu(rewriter: Rewriter, region: ClampedResult) -> Any:
    """Convert PRELU, whose slopes are along one axis."""
    call = rewriter.scope.look(region.expr)
    x, alpha = (rewriter.scope.activation(argument) for argument in call.args)
    after = len(x.shape) - 1 - int(call.attrs.axis) % len(x.shape)
    shape = (*alpha.shape, *(1 for _ in range(after)))
    slopes = rewriter.scope.constant(alpha.expr)
    turned = relax.op.reshape(alpha.expr, shape) if slopes is None else slopes.reshape(shape)
    expr = turned if slopes is None else compat.constant(turned)
    leaves = [x, Leaf(expr, alpha.params, shape)]
    pair = _pair(rewriter, region, leaves)
    return computed(rewriter, "PRELU", lambda: prelu_of(pair), leaves)


def matmul(rewriter: Rewriter, region: ClampedResult) -> Any:
    """Convert a product of matrices: a dense layer, or of two tensors that both vary."""
    call = rewriter.scope.look(region.expr)
    leaves = _two(rewriter, call)
    if leaves is None or rewriter.scope.constant(leaves[1].expr) is not None:
        return weighted(rewriter, region)
    pair = _pair(rewriter, region, leaves)
    return computed(rewriter, "BATCH_MATMUL", lambda: matmul_of(pair), leaves)


def _two(rewriter: Rewriter, call: relax.Call) -> list[Leaf] | None:
    """Two stored operands, or None if one is a number."""
    found = [_activation(rewriter, argument) for argument in call.args[:2]]
    leaves = [leaf for leaf in found if leaf is not None]
    return leaves if len(leaves) == 2 else None


def _pair(rewriter: Rewriter, region: ClampedResult, leaves: list[Leaf]) -> Pair:
    first, second = leaves
    shapes, sources = (first.shape, second.shape), (first.params, second.params)
    return Pair(shapes, sources, region.result, *region.limits, rewriter.rounding)


def concat(rewriter: Rewriter, region: ClampedResult) -> Any:
    """Convert a concat of quantised tensors."""
    call = rewriter.scope.look(region.expr)
    leaves = [rewriter.scope.activation(part) for part in joined_parts(rewriter, call)]
    if not region.is_unclamped:
        raise RefusedError("a concat with an activation")
    sources, made = [leaf.stored for leaf in leaves], region.stored(shape_of(call.ty))
    axis, rounding = int(call.attrs.axis), rewriter.rounding
    return computed(
        rewriter, "CONCATENATION", lambda: joined(sources, made, axis, rounding), leaves
    )


def softmax(rewriter: Rewriter, region: ClampedResult) -> Any:
    """Convert softmax over the last axis."""
    call = rewriter.scope.look(region.expr)
    x = rewriter.scope.activation(call.args[0])
    if int(call.attrs.axis) % len(x.shape) != len(x.shape) - 1:
        raise RefusedError("softmax over an axis that is not the last")
    op = Softmax(x.stored, region.stored(x.shape), 1.0, region.limits, rewriter.rounding)
    return computed(rewriter, "SOFTMAX", lambda: softmax_of(op), [x])


def rescaled(rewriter: Rewriter, region: ClampedResult, leaf: Leaf, value: relax.Expr) -> Any:
    """Return ``value``, stored as ``leaf`` says, in the scale and limits of ``region``."""
    made, rounding = region.stored(leaf.shape), rewriter.rounding
    record = Rescaling(leaf.stored, made, region.limits, rounding)
    return computed(rewriter, "QUANTIZE", lambda: record, [leaf], [value])


def function(rewriter: Rewriter, region: ClampedResult) -> Any:
    """Convert any function of one stored value to a table, and moves to moves of integers."""
    scope = rewriter.scope
    leaf = _activation(rewriter, region.expr)
    if leaf is not None:
        return rescaled(rewriter, region, leaf, rewriter.stored(leaf))
    moved = scope.moved(region.expr)
    if moved is not None:  # of what is computed: move it as it is stored
        made = rewriter.convert(replace(region, expr=moved.args[0]))
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
    if leaf.params.dtype == "int16" or region.result.dtype == "int16":
        raise RefusedError("a function of an int16 tensor")
    table = quantize_function.table(scope, region.expr, leaf, region.result)
    table = np.clip(table, region.low, region.high)
    value = rewriter.stored(leaf)
    return looked_up("q_table", leaf.stored, table, value, Writer(rewriter.builder))


def _activation(rewriter: Rewriter, expr: relax.Expr) -> Leaf | None:
    try:
        return rewriter.scope.activation(expr)
    except RefusedError:
        return None


def _given(rewriter: Rewriter, region: ClampedResult) -> Any:
    """Round a tensor that is given as float."""
    scope = rewriter.scope
    value = scope.look(region.expr)
    if compat.is_call(value) and compat.op_name(value) not in ("relax.dequantize",):
        raise RefusedError(f"no integer form of {name_of(value)}")
    return store(rewriter, region)


def store(rewriter: Rewriter, region: ClampedResult) -> Any:
    """Round a tensor that is computed, or given, as float."""
    if compat.dtype_name(region.expr.ty) != "float32":
        raise RefusedError("a tensor that is not float32 is quantised")
    shape = shape_of(region.expr.ty)
    kernel = pointwise.store(shape, region.result, region.low, region.high, rewriter.rounding)
    source = rewriter.emitted(rewriter.rewritten(region.expr), "real")
    return Writer(rewriter.builder).kernel("q_store", kernel, source)


REGIONS = Rules(
    by_operator={
        CONV: weighted,
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
    },
    other=function,
)
"""Of modules whose quantised operators are float operators between two conversions."""

FILES = Rules(by_operator={}, other=store)
"""Of ``.tflite`` files: their quantised operators are integers already."""
