"""Elementwise integer kernels: sums, products, tables, conversions; and softmax."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tvm import te, tirx

from tvm_serenity.kernels.arithmetic import (
    clamped,
    f32,
    finished,
    high_product,
    i32,
    i64,
    scaled,
    stored,
)
from tvm_serenity.kernels.build import for_any, prim_func
from tvm_serenity.kernels.records import Lookup as Lookup
from tvm_serenity.kernels.records import Pair as Pair
from tvm_serenity.kernels.records import Product as Product
from tvm_serenity.kernels.records import RealSoftmax, Requantise, RowSoftmax, Shape
from tvm_serenity.kernels.records import Sum as Sum
from tvm_serenity.quantize.fixed import Multiplier
from tvm_serenity.quantize.params import Affine


def add(total: Sum) -> Any:
    """Return the kernel ``(a, b, result)`` of a sum."""
    spec, left, right = total.pair, total.left, total.right
    minus = right.real[0] < 0
    signed = Multiplier((-right.value[0],), right.shift, right.real) if minus else right

    def value(a: tirx.Expr, b: tirx.Expr) -> Any:
        if spec.rounding == "float":
            return _add_real(spec, a, b, right.real[0] < 0)
        first = scaled(tirx.shift_left(a, i32(total.shift)), left, spec.rounding)
        second = scaled(tirx.shift_left(b, i32(total.shift)), signed, spec.rounding)
        return scaled(first + second, total.out, spec.rounding)

    return _binary(spec, value, total)


def multiply(product: Product) -> Any:
    """Return the kernel ``(a, b, result)`` of a product."""
    rounding = product.pair.rounding
    return _binary(product.pair, lambda a, b: scaled(a * b, product.out, rounding), product)


def _add_real(spec: Pair, a: tirx.Expr, b: tirx.Expr, minus: bool) -> Any:
    x = a.astype("float32") * f32(spec.sources[0].scale)
    y = b.astype("float32") * f32(spec.sources[1].scale)
    return tirx.nearbyint((x - y if minus else x + y) / f32(spec.result.scale)).astype("int32")


def _binary(
    spec: Pair, value: Callable[[tirx.Expr, tirx.Expr], Any], made_from: Sum | Product
) -> Any:
    a, b = (
        te.placeholder(shape, source.dtype, name)
        for shape, source, name in zip(spec.shapes, spec.sources, "ab", strict=True)
    )

    def result(*at: tirx.Var) -> Any:
        first = a(*_broadcast(at, spec.shapes[0])).astype("int32") - i32(spec.sources[0].zero_point)
        second = b(*_broadcast(at, spec.shapes[1])).astype("int32") - i32(
            spec.sources[1].zero_point
        )
        total = value(first, second)
        return stored(total, spec.result.zero_point, spec.low, spec.high, spec.result.dtype)

    return prim_func([a, b, te.compute(spec.output_shape, result, name="out")], made_from)


def _broadcast(at: Sequence[Any], shape: Shape) -> list[Any]:
    inner = at[len(at) - len(shape) :]
    return [0 if extent == 1 else index for index, extent in zip(inner, shape, strict=True)]


def lookup(shape: Shape, source: str, result: str) -> Any:
    """Return the kernel ``(x, table, result)`` of a function of one 8-bit value."""
    x = te.placeholder(shape, source, "x")
    table = te.placeholder((256,), result, "table")
    first = int(np.iinfo(source).min)
    out = te.compute(
        shape,
        lambda *at: table[x(*at).astype("int32") - i32(first) if first else x(*at).astype("int32")],
        name="out",
    )
    return prim_func([x, table, out], Lookup(shape, source, result))


def rescale(shape: Shape, source: Affine, spec: Requantise) -> Any:
    """Return the kernel ``(x, result)`` that requantises each element without a lookup table."""
    x = te.placeholder(shape, source.dtype, "x")
    finish = finished(spec, ())
    out = te.compute(
        shape, lambda *at: finish(x(*at).astype("int32") - i32(source.zero_point), None), name="out"
    )
    return prim_func([x, out])


def store(shape: Shape, result: Affine, low: int, high: int, rounding: str) -> Any:
    """Return the kernel ``(x, result)`` that quantises float32."""
    x = te.placeholder(shape, "float32", "x")

    def value(*at: tirx.Var) -> Any:
        ratio = x(*at) / tirx.const(np.float32(result.scale).item(), "float32")
        if rounding == "float":
            whole = tirx.nearbyint(ratio)
        else:
            half = tirx.Select(ratio < 0, tirx.const(-0.5, "float32"), tirx.const(0.5, "float32"))
            whole = tirx.trunc(ratio + half)
        bounded = te.max(
            te.min(whole, tirx.const(float(high - result.zero_point), "float32")),
            tirx.const(float(low - result.zero_point), "float32"),
        )
        return (bounded.astype("int32") + i32(result.zero_point)).astype(result.dtype)

    return prim_func([x, te.compute(shape, value, name="out")])


def softmax(shape: Shape, source: str, result: str, entries: int = 256) -> Any:
    """Return the kernel ``(x, exponentials, result)`` of TFLite's fixed-point softmax.

    It is along the last axis of ``shape``, which has two axes or more.

    ``result`` has scale 1/256 (int16: 1/65536) and the least value of its type as zero point. There
    are ``entries`` exponentials; the last one stands for all larger distances.
    """
    rows, columns = shape[:-1], shape[-1]
    x = te.placeholder(shape, source, "x")
    table = te.placeholder((entries,), "int32", "exponentials")
    k = te.reduce_axis((0, columns), "k")
    most = te.compute(rows, lambda *i: te.max(x(*i, k).astype("int32"), axis=[k]), name="most")
    j = te.reduce_axis((0, columns), "j")

    def exponential(*at: tirx.Var | tirx.IterVar) -> Any:
        below = most(*at[:-1]) - x(*at).astype("int32")
        return table[below if entries == 256 else te.min(below, i32(entries - 1))]

    total = te.compute(
        rows, lambda *i: te.sum(_rounded(exponential(*i, j), 12), axis=[j]), name="total"
    )
    inverse = _reciprocal(rows, total)
    limits = np.iinfo(result)

    def value(*at: tirx.Var) -> Any:
        row = at[:-1]
        product = high_product(inverse(*row), exponential(*at))
        # The mask changes nothing; TVM's simplifier mistakes shifts by unbounded amounts.
        over_unit = tirx.bitwise_and(i32(12) - tirx.clz(total(*row)), i32(15)).astype("int64")
        exponent = i64(31 - limits.bits) + over_unit
        half = tirx.shift_left(i64(1), exponent - i64(1))
        rounded = tirx.shift_right(product.astype("int64") + half, exponent).astype("int32")
        return clamped(rounded + i32(limits.min), limits.min, limits.max, result)

    out = te.compute((*rows, columns), value, name="out")
    return for_any(prim_func([x, table, out], RowSoftmax(tuple(shape), source, result)))


def real_softmax(spec: RealSoftmax) -> Any:
    """Return the kernel ``(x, exponentials, result)`` of softmax, rounded as in onnxruntime."""
    rows, columns = spec.shape[:-1], spec.shape[-1]
    x = te.placeholder(spec.shape, spec.source, "x")
    powers = te.placeholder((256,), "float32", "exponentials")
    k = te.reduce_axis((0, columns), "k")
    most = te.compute(rows, lambda *i: te.max(x(*i, k).astype("int32"), axis=[k]), name="most")
    j = te.reduce_axis((0, columns), "j")

    def power(*at: tirx.Var | tirx.IterVar) -> Any:
        return powers[most(*at[:-1]) - x(*at).astype("int32")]

    total = te.compute(rows, lambda *i: te.sum(power(*i, j), axis=[j]), name="total")

    def value(*at: tirx.Var) -> Any:
        scale = tirx.const(np.float32(spec.result.scale).item(), "float32")
        whole = tirx.nearbyint(power(*at) / total(*at[:-1]) / scale).astype("int32")
        return stored(whole, spec.result.zero_point, spec.low, spec.high, spec.result.dtype)

    out = te.compute((*rows, columns), value, name="out")
    return for_any(prim_func([x, powers, out]))


def _rounded(x: tirx.Expr, exponent: int) -> Any:
    wide = x.astype("int64") + i64(1 << (exponent - 1))  # x may be the largest 32-bit value
    return tirx.shift_right(wide, i64(exponent)).astype("int32")


def _reciprocal(rows: Shape, total: te.Tensor) -> Any:
    """Return gemmlowp's ``one_over_one_plus_x_for_x_in_0_1`` of sums shifted to Q0.31, in Q0.31.

    Each Newton step is a stage: as one expression it would double at each step.
    """

    def half_denominator(*i: tirx.Var) -> Any:
        shifted = tirx.shift_left(total(*i).astype("int64"), tirx.clz(total(*i)).astype("int64"))
        return tirx.shift_right(shifted, i64(1)).astype("int32")

    half = te.compute(rows, half_denominator, name="half")
    guess = te.compute(
        rows, lambda *i: i32(1515870810) + high_product(half(*i), i32(-1010580540)), name="guess0"
    )
    for step in range(1, 4):
        guess = te.compute(rows, _newton(half, guess), name=f"guess{step}")

    def doubled(*i: tirx.Var) -> Any:
        wide = tirx.shift_left(guess(*i).astype("int64"), i64(1))
        return te.min(wide, i64((1 << 31) - 1)).astype("int32")

    return te.compute(rows, doubled, name="inverse")


def _newton(half: te.Tensor, guess: te.Tensor) -> Any:
    def step(*i: tirx.Var) -> Any:
        rest = i32(1 << 29) - high_product(half(*i), guess(*i))
        return guess(*i) + tirx.shift_left(high_product(guess(*i), rest), i32(2))

    return step
