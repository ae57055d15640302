"""Integer kernels over rows: 8-bit LOG_SOFTMAX and L2_NORMALIZATION, 16-bit SOFTMAX.

All follow LiteRT's fixed-point reference kernels, stage by stage; rows are the last axis.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import te, tirx

from tvm_serenity.kernels.arithmetic import (
    clamped,
    divided_by_power,
    high_product,
    i32,
    i64,
    scaled,
    stored,
)
from tvm_serenity.kernels.build import for_any, prim_func
from tvm_serenity.kernels.fixed_pairs import inverse_of_half
from tvm_serenity.kernels.records import Shape
from tvm_serenity.kernels.sixteen import between
from tvm_serenity.quantize.fixed import Multiplier, multiplier

_MOST = (1 << 31) - 1
_SQRT_HALF, _ROOT, _LOG_2 = 1518500250, 1805811301, 1488522236
"""sqrt(1/2), its square root, and log(2), in Q0.31."""


def _most(x: te.Tensor, rows: Shape, columns: int) -> Any:
    k = te.reduce_axis((0, columns), "k")
    return te.compute(rows, lambda *i: te.max(x(*i, k).astype("int32"), axis=[k]), name="most")


def log_softmax(rows: int, columns: int, dtype: str, reverse: Multiplier, least: int) -> Any:
    """Return the kernel ``(x, exponentials, differences, result)`` of LOG_SOFTMAX.

    The tables are indexed by the distance from the row's maximum. ``reverse`` converts Q5.26 to
    such distances; distances beyond ``-least`` count as infinite. The result has steps of 1/16 and
    the largest value as zero point.
    """
    x = te.placeholder((rows, columns), dtype, "x")
    powers = te.placeholder((256,), "int32", "exponentials")
    steps = te.placeholder((256,), "int32", "differences")
    most = _most(x, (rows,), columns)
    j = te.reduce_axis((0, columns), "j")

    def power(i: tirx.Var, c: tirx.IterVar) -> Any:
        wide = powers[most[i] - x[i, c].astype("int32")].astype("int64") + i64(1 << 11)
        return tirx.shift_right(wide, i64(12)).astype("int32")

    total = te.compute((rows,), lambda i: te.sum(power(i, j), axis=[j]), name="total")
    log = _logarithm(rows, total)
    low, high = (int(v) for v in (np.iinfo(dtype).min, np.iinfo(dtype).max))

    def bound(i: tirx.Var) -> Any:
        back = scaled(log[i] + i32(-(1 << 31)), reverse)
        return te.max(i32(least - 1), back)

    limit = te.compute((rows,), bound, name="limit")

    def value(i: tirx.Var, c: tirx.Var) -> Any:
        distance = most[i] - x[i, c].astype("int32")
        rest = divided_by_power(steps[distance] - log[i], 22) + i32(high)
        near = i32(0) - distance > limit[i]
        return clamped(tirx.Select(near, rest, i32(low)), low, high, dtype)

    out = te.compute((rows, columns), value, name="out")
    return for_any(prim_func([x, powers, steps, out]))


def _doubled(x: tirx.Expr) -> Any:
    wide = tirx.shift_left(x.astype("int64"), i64(1))
    return te.max(te.min(wide, i64(_MOST)), i64(-(1 << 31))).astype("int32")


def _logarithm(rows: int, total: te.Tensor) -> Any:
    """Return log of ``total`` (Q12.19, at least 1) in Q5.26, stage by stage."""

    def stage(name: str, value: Callable[[tirx.Var], Any]) -> Any:
        return te.compute((rows,), value, name=name)

    zeros = stage("zeros", lambda i: tirx.clz(total[i]))
    first = stage(
        "first",
        lambda i: _doubled(
            high_product(tirx.shift_left(total[i], zeros[i] - i32(1)), i32(_SQRT_HALF))
        ),
    )
    room = stage("room", lambda i: tirx.clz(high_product(total[i], i32(_SQRT_HALF))) - i32(1))

    def second(i: tirx.Var) -> Any:
        wide = tirx.shift_left(total[i].astype("int64"), room[i].astype("int64"))
        return te.min(wide, i64(_MOST)).astype("int32")

    r = stage("r", lambda i: te.min(first[i], second(i)))
    power = stage(
        "power",
        lambda i: te.max(
            (i32(12) - zeros[i]) * i32(1 << 25) + i32(1 << 23),
            (i32(12) - room[i]) * i32(1 << 25) - i32(1 << 23),
        ),
    )
    q = stage("q", lambda i: tirx.shift_left(r[i] - i32(_ROOT), i32(1)))
    square = stage("square", lambda i: high_product(q[i], q[i]))
    over = stage(
        "over",
        lambda i: (
            high_product(q[i], r[i]) + high_product(high_product(q[i], square[i]), i32(117049297))
        ),
    )

    def under(i: tirx.Var) -> Any:
        mean = tirx.shift_right(r[i].astype("int64") + i64(_ROOT) + i64(1), i64(1)).astype("int32")
        inner = i32(1057819769) + q[i] + high_product(i32(127690142), square[i])
        return high_product(mean, inner) + high_product(i32(638450708), q[i])

    def half_of(i: tirx.Var) -> Any:
        return tirx.shift_right(under(i).astype("int64") + i64(1 << 31), i64(1)).astype("int32")

    inverse = inverse_of_half(stage("half", half_of))
    return stage(
        "log",
        lambda i: _doubled(
            high_product(power[i], i32(_LOG_2))
            + high_product(divided_by_power(over[i], 6), inverse[i])
        ),
    )


def l2_normalised(rows: int, columns: int, dtype: str, zero_point: int) -> Any:
    """Return the kernel ``(x, result)`` of L2_NORMALIZATION, in steps of 1/128 around 0."""
    x = te.placeholder((rows, columns), dtype, "x")
    low, high = (int(v) for v in (np.iinfo(dtype).min, np.iinfo(dtype).max))
    k = te.reduce_axis((0, columns), "k")

    def centred(i: tirx.Var, c: tirx.Var | tirx.IterVar) -> Any:
        return x[i, c].astype("int32") - i32(zero_point)

    total = te.compute(
        (rows,), lambda i: te.sum(centred(i, k) * centred(i, k), axis=[k]), name="total"
    )
    root, shift = _inverse_root(rows, total)

    def value(i: tirx.Var, c: tirx.Var) -> Any:
        # uint8 multiplies by 128 first; int8 has it in the shift, and rounds elsewhere.
        up = i32(7) if dtype == "uint8" else te.max(i32(7) - shift[i], i32(0))
        by = shift[i] if dtype == "uint8" else te.max(shift[i] - i32(7), i32(0))
        product = high_product(tirx.shift_left(centred(i, c), up), root[i])
        half = tirx.shift_right(tirx.shift_left(i32(1), by), i32(1))
        negative = tirx.shift_right(product, i32(31)) * tirx.min(by, i32(1))
        whole = tirx.shift_right(product + half + negative, by)
        return clamped(whole + i32(low + 128), low, high, dtype)

    return prim_func([x, te.compute((rows, columns), value, name="out")])


def _inverse_root(rows: int, total: te.Tensor) -> tuple[Any, Any]:
    """Return 1 / sqrt(total) in Q0.31 and its right shift.

    ``GetInvSqrtQuantizedMultiplierExp``: five Newton steps from 1.
    """

    def stage(name: str, value: Callable[[tirx.Var], Any]) -> Any:
        return te.compute((rows,), value, name=name)

    large = stage("large", lambda i: tirx.Select(total[i] >= i32(1 << 29), i32(1), i32(0)))
    small = stage("small", lambda i: te.max(tirx.shift_right(total[i], large[i] * i32(2)), i32(2)))
    pairs = stage("pairs", lambda i: tirx.shift_right(tirx.clz(small[i]) - i32(1), i32(1)) - i32(1))
    half = stage(
        "half",
        lambda i: divided_by_power(
            tirx.shift_right(tirx.shift_left(small[i], pairs[i] * i32(2)), i32(1)), 1
        ),
    )
    guess = None
    for step in range(5):
        guess = stage(f"guess{step}", _root_step(half, guess))
    assert guess is not None
    raw = stage("raw", lambda i: high_product(guess[i], i32(_SQRT_HALF)))
    over = stage("over", lambda i: i32(11) + large[i] - pairs[i])

    def root(i: tirx.Var) -> Any:
        shifted = tirx.shift_left(raw[i], te.max(i32(0) - over[i], i32(0)))
        return tirx.Select(total[i] <= i32(1), i32(_MOST), shifted)

    def shift(i: tirx.Var) -> Any:
        return tirx.Select(total[i] <= i32(1), i32(0), te.max(over[i], i32(0)))

    return stage("scaled", root), stage("by", shift)


def _root_step(half: te.Tensor, guess: te.Tensor | None) -> Any:
    def step(i: tirx.Var) -> Any:
        x = i32(1 << 28) if guess is None else guess[i]
        cube = tirx.shift_left(high_product(high_product(x, x), x), i32(6))
        rest = high_product(i32((1 << 28) + (1 << 27)), x) - high_product(half[i], cube)
        return tirx.shift_left(rest, i32(3))

    return step


def softmax16(shape: Shape, scale: float) -> Any:
    """Return the kernel ``(x, exponentials, inverses, result)`` of 16-bit SOFTMAX.

    It is along the last axis of ``shape``, which has two axes or more. ``scale``: that of ``x``
    times beta. Both tables have 513 samples. The result has steps of 2**-15.
    """
    rows, columns = shape[:-1], shape[-1]
    x = te.placeholder(shape, "int16", "x")
    powers = te.placeholder((513,), "int16", "exponentials")
    inverses = te.placeholder((513,), "int16", "inverses")
    most = _most(x, rows, columns)
    m = multiplier(scale / (10.0 / 65535.0))

    def exponential(*at: tirx.Var) -> Any:
        sample = scaled(x(*at).astype("int32") - most(*at[:-1]), m) + i32(32767)
        return between(te.max(te.min(sample, i32(32767)), i32(-32768)), powers)

    power = te.compute((*rows, columns), exponential, name="power")
    j = te.reduce_axis((0, columns), "j")
    total = te.compute(rows, lambda *i: te.sum(power(*i, j), axis=[j]), name="total")

    def inverse_of(*i: tirx.Var) -> Any:
        wide = tirx.shift_left(
            total(*i).astype("int64"), (tirx.clz(total(*i)) - i32(1)).astype("int64")
        )
        whole = tirx.shift_right(wide + i64(1 << 13), i64(14)).astype("int32")
        at = whole - i32((1 << 15) + (1 << 16))
        return between(te.max(te.min(at, i32(32767)), i32(-32768)), inverses)

    inverse = te.compute(rows, inverse_of, name="inverse")

    def value(*at: tirx.Var) -> Any:
        row = at[:-1]
        # The mask changes nothing; TVM's simplifier mistakes shifts by unbounded amounts.
        right = tirx.bitwise_and(i32(31) - tirx.clz(total(*row)), i32(31)).astype("int64")
        half = tirx.shift_left(i64(1), right - i64(1))
        product = power(*at).astype("int64") * inverse(*row).astype("int64") + half
        return stored(tirx.shift_right(product, right).astype("int32"), 0, 0, 32767, "int16")

    out = te.compute((*rows, columns), value, name="out")
    return for_any(prim_func([x, powers, inverses, out]))
