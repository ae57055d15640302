"""Kernels of float activations with 8-bit weights, as in LiteRT's "hybrid" kernels.

In sequence: the value range of each batch, its quantisation, the quantised batch, and an integer
layer whose sums become floats. Float operations are in LiteRT's order, so that results are
bit-identical; values round half away from zero.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from tvm import te, tirx
from tvm.script.ir_builder import tirx as T  # noqa: N812

from tvm_serenity.kernels.arithmetic import f32, f64, i32
from tvm_serenity.kernels.build import prim_func, written
from tvm_serenity.kernels.convolution import padded, summed
from tvm_serenity.kernels.dynamic_records import (
    BatchSteps,
    DynamicConvolution,
    DynamicDense,
    DynamicProduct,
    Limits,
    steps_columns,
)
from tvm_serenity.kernels.fixed16 import named
from tvm_serenity.kernels.fixed_pairs import broadcast
from tvm_serenity.kernels.records import Rescale
from tvm_serenity.kernels.spec import described

SCALE, INVERSE, ZERO = range(3)
"""Columns of an array of quantisation parameters."""
_LEAST, _MOST = -128, 127
_LANES = 64
"""Elements whose extremes are searched together."""
_LOWEST = -3.4e38
"""A lower bound of all products of sums and scales."""


def ends(spec: BatchSteps) -> Any:
    """Return the kernel ``(x, ends)``: the least and largest value of each batch, and 0.

    A symmetric range is the largest magnitude. Two stages, so that rows can be added one by one.
    """
    x = te.placeholder(spec.shape, "float32", "x")
    axes = [te.reduce_axis((0, extent), f"k{i}") for i, extent in enumerate(spec.shape[1:])]

    def end(n: tirx.Var, e: tirx.Var) -> Any:
        value = x(n, *axes)
        if not spec.asymmetric:
            return te.max(te.max(value, f32(-1) * value), axis=axes)
        return te.max(te.if_then_else(e == 0, f32(-1) * value, value), axis=axes)

    reach = te.compute(spec.ends_shape, end, name="reach")
    out = te.compute(spec.ends_shape, lambda n, e: reach[n, e], name="out")
    return prim_func([x, out], spec)


def wide_ends(spec: BatchSteps) -> Any:
    """Return the kernel of :func:`ends` in vectors: a maximum does not depend on the order."""
    held = {"x": (spec.shape, "float32"), "out": (spec.ends_shape, "float32")}
    return described(written(held, partial(_wide_ends, spec)), spec)


def _wide_ends(spec: BatchSteps, x: Any, out: Any) -> None:
    count = math.prod(spec.shape[1:])
    lanes = min(_LANES, 1 << (count.bit_length() - 1))
    flat = T.decl_buffer((spec.shape[0] * count,), "float32", data=x.data)
    most = T.alloc_buffer((lanes,), "float32")

    def reach(at: Any, below: bool) -> Any:
        value, other = flat[at], f32(-1) * flat[at]
        if spec.asymmetric:
            return other if below else value
        return te.max(value, other)

    with T.serial(spec.shape[0]) as n:
        for column in range(spec.ends_shape[1]):
            at = partial(reach, below=column == 0)
            with T.vectorized(lanes) as i:
                T.buffer_store(most, at(n * count + i), [i])
            with T.serial(count // lanes - 1) as k, T.vectorized(lanes) as i:
                first = n * count + (k + 1) * lanes
                T.buffer_store(most, te.max(most[i], at(first + i)), [i])
            with T.serial(count % lanes) as i:
                first = n * count + count // lanes * lanes
                T.buffer_store(most, te.max(most[i], at(first + i)), [i])
            T.buffer_store(out, most[0], [n, column])
            with T.serial(lanes) as i:
                T.buffer_store(out, te.max(out[n, column], most[i]), [n, column])


def steps(spec: BatchSteps) -> Any:
    """Return the kernel ``(ends, steps)``: quantisation parameters from value ranges."""
    held = {"ends": (spec.ends_shape, "float32"), "steps": (spec.steps_shape, "float32")}
    return written(held, partial(_steps, spec))


def _steps(spec: BatchSteps, reach: Any, made: Any) -> None:
    with T.serial(spec.shape[0]) as n:
        columns = (_asymmetric if spec.asymmetric else _symmetric)(reach, n)
        for column, value in enumerate(columns):
            T.buffer_store(made, value, [n, column])


def _symmetric(reach: Any, n: tirx.Var) -> tuple[Any, ...]:
    """Return the scale and its inverse: the largest magnitude is stored as 127."""
    most, nothing = f32(_MOST), reach[n, 0] == f32(0)
    held = named(tirx.if_then_else(nothing, most, reach[n, 0]), "float32")
    return held / most, tirx.if_then_else(nothing, f32(0), most / held)


def _asymmetric(reach: Any, n: tirx.Var) -> tuple[Any, ...]:
    """Return the scale, its inverse and the zero point closest to both ends of the range."""
    zero = f32(0)
    down, up = (named(tirx.max(reach[n, e], zero), "float32") for e in range(2))
    span = named(up + down, "float32")
    nothing = span == zero
    step = span.astype("float64") / f64(_MOST - _LEAST)
    step = named(tirx.if_then_else(nothing, f64(1), step), "float64")
    below, above = (named(end.astype("float64") / step, "float64") for end in (down, up))
    nearer = f64(-_LEAST) + below < f64(_MOST) + above
    point = tirx.if_then_else(nearer, below + f64(_LEAST), f64(_MOST) - above)
    point = named(tirx.max(tirx.min(point, f64(_MOST)), f64(_LEAST)), "float64")
    scale = named(step.astype("float32"), "float32")
    stored = tirx.if_then_else(nothing, zero, _nearest(point, "float64").astype("float32"))
    return scale, tirx.if_then_else(nothing, zero, f32(1) / scale), stored


def _nearest(x: Any, dtype: str) -> Any:
    """Return the integer of type ``dtype`` nearest to a small float, halves away from zero."""
    whole = x.astype("int32")
    rest = x - whole.astype(dtype)
    half = tirx.const(0.5, dtype)
    up = tirx.Select(rest >= half, i32(1), i32(0))
    return whole + tirx.Select(rest <= -half, i32(-1), up)


def stored(spec: BatchSteps) -> Any:
    """Return the kernel ``(x, steps, result)`` that quantises floats to int8."""
    x = te.placeholder(spec.shape, "float32", "x")
    steps_of = te.placeholder(spec.steps_shape, "float32", "steps")

    def value(n: tirx.Var, *at: tirx.Var) -> Any:
        whole = _nearest(x(n, *at) * steps_of[n, INVERSE], "float32")
        least = _LEAST if spec.asymmetric else -_MOST
        if spec.asymmetric:
            whole = whole + steps_of[n, ZERO].astype("int32")
        return te.max(te.min(whole, i32(_MOST)), i32(least)).astype("int8")

    return prim_func([x, steps_of, te.compute(spec.shape, value, name="out")])


def convolution(spec: DynamicConvolution) -> Any:
    """Return the kernel ``(x, steps, weight, scales, bias if there is one, result)``."""
    taps, (shape,) = spec.taps, spec.taps.pieces
    x = te.placeholder(shape, "int8", "x")
    steps_of = te.placeholder((shape[0], steps_columns(spec.asymmetric)), "float32", "steps")
    weight = te.placeholder(taps.weight_shape, "int8", "w")
    scales, own = scales_of(spec.scales)
    bias = bias_of(taps.channels, spec.biased)

    def zero(n: Any) -> Any:
        return steps_of[n, ZERO].astype("int8") if spec.asymmetric else tirx.const(0, "int8")

    def centred(value: Any, n: Any) -> Any:
        wide = value.astype("int32")
        return wide - steps_of[n, ZERO].astype("int32") if spec.asymmetric else wide

    total = summed(taps, padded(taps, x, zero, centred), weight, 0, shape[3])

    def value(n: tirx.Var, row: tirx.Var, column: tirx.Var, c: tirx.Var) -> Any:
        scale = own(c), steps_of[n, SCALE]
        return rescaled(spec.finish, total(n, row, column, c), scale, [b[c] for b in bias])

    out = te.compute(taps.output_shape, value, name="out")
    return prim_func([x, steps_of, weight, scales, *bias, out], spec)


def rescaled(spec: Rescale, total: Any, scale: tuple[Any, Any], bias: Sequence[Any]) -> Any:
    """Return a sum as a float; ``scale``: that of its channel, and that of its image."""
    made, (own, image) = total.astype("float32"), scale
    made = made * own * image if spec.channel_first else made * (own * image)
    return with_bias(made, bias, spec.limits)


def dense(spec: DynamicDense) -> Any:
    """Return the kernel ``(x, steps, weight, sums if asymmetric, scales, bias if any, result)``.

    ``sums``: the sum of each unit's weights, to be multiplied by the zero point.
    """
    x = te.placeholder((spec.rows, spec.inputs), "int8", "x")
    steps_of = te.placeholder((spec.rows, steps_columns(spec.asymmetric)), "float32", "steps")
    weight = te.placeholder((spec.inputs, spec.units), "int8", "w")
    sums = [te.placeholder((spec.units,), "int32", "sums")] if spec.asymmetric else []
    scales, own = scales_of(spec.scales)
    bias = bias_of(spec.units, spec.biased)
    k = te.reduce_axis((0, spec.inputs), "k")
    total = te.compute(
        (spec.rows, spec.units),
        lambda i, j: te.sum(x[i, k].astype("int32") * weight[k, j].astype("int32"), axis=[k]),
        name="sum",
    )

    def value(i: tirx.Var, j: tirx.Var) -> Any:
        whole = total[i, j]
        if spec.asymmetric:
            whole = whole - steps_of[i, ZERO].astype("int32") * sums[0][j]
        return rescaled(spec.finish, whole, (own(j), steps_of[i, SCALE]), [b[j] for b in bias])

    out = te.compute(total.shape, value, name="out")
    return prim_func([x, steps_of, weight, *sums, scales, *bias, out], spec)


def product(spec: DynamicProduct) -> Any:
    """Return the kernel ``(x, steps, y, result)``; ``steps``: those of the rows of ``x``."""
    left, right = spec.shapes
    x, y = te.placeholder(left, "int8", "x"), te.placeholder(right, "int8", "y")
    columns = steps_columns(spec.asymmetric)
    steps_of = te.placeholder((*left[:-1], columns), "float32", "steps")
    k = te.reduce_axis((0, left[-1]), "k")

    def term(*at: tirx.Var) -> Any:
        *batch, row, column = at
        own = broadcast(batch, left[:-2])
        wide = x(*own, row, k).astype("int32")
        if spec.asymmetric:
            wide = wide - steps_of(*own, row, ZERO).astype("int32")
        other = (column, k) if spec.adjoint else (k, column)
        return te.sum(wide * y(*broadcast(batch, right[:-2]), *other).astype("int32"), axis=[k])

    total = te.compute(spec.output_shape, term, name="sum")

    def value(*at: tirx.Var) -> Any:
        *batch, row, _ = at
        scale = steps_of(*broadcast(batch, left[:-2]), row, SCALE) * f32(
            float(np.float32(spec.scale))
        )
        return total(*at).astype("float32") * scale

    return prim_func([x, steps_of, y, te.compute(spec.output_shape, value, name="out")])


def scales_of(count: int) -> tuple[Any, Callable[[Any], Any]]:
    """Return the parameter of the weight scales, and a reader of a channel's scale."""
    scales = te.placeholder((count,), "float32", "scales")
    return scales, lambda channel: scales[channel if count > 1 else 0]


def bias_of(count: int, biased: bool) -> list[Any]:
    """Return the parameter of a bias of ``count`` numbers, if there is one."""
    return [te.placeholder((count,), "float32", "b")] if biased else []


def with_bias(made: Any, bias: Sequence[Any], limits: Limits) -> Any:
    """Return a float product plus its bias, clamped to limits.

    The product is rounded first: a maximum in between prevents compilers from fusing the addition
    (FMA).
    """
    for held in bias:
        made = te.max(made, f32(_LOWEST)) + held
    if limits is None:
        return made
    low, high = (f32(limit) for limit in limits)
    return te.min(te.max(made, low), high)
