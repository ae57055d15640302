"""Integer kernels of two broadcast tensors, rounded as in LiteRT's reference kernels."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tvm import te, tirx

from tvm_serenity.kernels.arithmetic import (
    divided_by_power,
    high_product,
    i32,
    i64,
    scaled,
    stored,
)
from tvm_serenity.kernels.build import for_any, prim_func
from tvm_serenity.kernels.records import Pair, Shape
from tvm_serenity.quantize.fixed import Multiplier, multiplier

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "equal": lambda a, b: a.equal(b),
    "not_equal": lambda a, b: tirx.Not(a.equal(b)),
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
}


def pairwise(
    shapes: tuple[Shape, Shape], dtypes: Sequence[str], value: Callable[[tirx.Expr, tirx.Expr], Any]
) -> Any:
    """Return the kernel ``(a, b, result)`` of ``value(a, b)``, both as int32, broadcast."""
    a, b = (te.placeholder(s, d, n) for s, d, n in zip(shapes, dtypes, "ab", strict=True))
    shape = tuple(int(extent) for extent in np.broadcast_shapes(*shapes))

    def result(*at: tirx.Var) -> Any:
        first, second = a(*broadcast(at, shapes[0])), b(*broadcast(at, shapes[1]))
        return value(first.astype("int32"), second.astype("int32"))

    return prim_func([a, b, te.compute(shape, result, name="out")])


def broadcast(at: Sequence[Any], shape: Shape) -> list[Any]:
    """Return the index in a tensor of ``shape`` for index ``at`` of the result."""
    inner = at[len(at) - len(shape) :]
    return [0 if extent == 1 else index for index, extent in zip(inner, shape, strict=True)]


def _centred(pair: Pair, value: Callable[[Any, Any], Any]) -> Any:
    """Return the kernel of ``value`` on stored values minus zero points."""
    zeros = [i32(s.zero_point) for s in pair.sources]
    return pairwise(
        pair.shapes,
        [s.dtype for s in pair.sources],
        lambda a, b: value(a - zeros[0], b - zeros[1]),
    )


def comparison(name: str, pair: Pair) -> Any:
    """Return the kernel ``(a, b, result)`` of an 8-bit comparison with a boolean result.

    Both operands are rescaled to steps of 2**-8, so that close values may compare as equal.
    """
    first, second = (multiplier(s.scale) for s in pair.sources)

    def value(a: tirx.Expr, b: tirx.Expr) -> Any:
        x = _scaled_by(a * i32(256), first)
        y = _scaled_by(b * i32(256), second)
        return COMPARISONS[name](x, y)

    return _centred(pair, value)


def _scaled_by(x: tirx.Expr, m: Multiplier) -> Any:
    """``MultiplyByQuantizedMultiplierSmallerThanOneExp``, which only shifts right."""
    return divided_by_power(high_product(x, i32(m.value[0])), -min(m.shift[0], 0))


def squared_difference(pair: Pair) -> Any:
    """Return the kernel ``(a, b, result)`` of SQUARED_DIFFERENCE."""
    first, second = (s.scale for s in pair.sources)
    twice = 2 * max(first, second)
    left, right = multiplier(first / twice), multiplier(second / twice)
    out = multiplier(twice * twice / ((1 << 14) * pair.result.scale))

    def value(a: tirx.Expr, b: tirx.Expr) -> Any:
        difference = scaled(a * i32(128), left) - scaled(b * i32(128), right)
        total = scaled(difference * difference, out)
        return stored(total, pair.result.zero_point, pair.low, pair.high, pair.result.dtype)

    return _centred(pair, value)


def prelu(pair: Pair) -> Any:
    """Return the kernel ``(x, alpha, result)`` of PRELU."""
    f32 = np.float32
    x, alpha = (f32(s.scale) for s in pair.sources)
    made = f32(pair.result.scale)
    keep, slope = multiplier(float(x / made)), multiplier(float(x * alpha / made))

    def value(a: tirx.Expr, b: tirx.Expr) -> Any:
        total = tirx.Select(a >= i32(0), scaled(a, keep), scaled(a * b, slope))
        return stored(total, pair.result.zero_point, *pair.result.limits, pair.result.dtype)

    return _centred(pair, value)


def sum_of_powers(pair: Pair, shifts: tuple[int, int], minus: bool) -> Any:
    """Return the kernel ``(a, b, result)`` of a 16-bit sum with power-of-two scales.

    One operand is shifted right by ``shifts``; sums saturate.
    """

    def value(a: tirx.Expr, b: tirx.Expr) -> Any:
        a, b = divided_by_power(a, shifts[0]), divided_by_power(b, shifts[1])
        return stored(a - b if minus else a + b, 0, pair.low, pair.high, pair.result.dtype)

    return pairwise(pair.shapes, [s.dtype for s in pair.sources], value)


def quotient(pair: Pair) -> Any:
    """Return the kernel ``(a, b, dividends, rooms, inverses, shifts, result)`` of 8-bit DIV.

    The tables are ``lookups.dividends`` and ``lookups.inverses``, indexed by stored values minus
    the least value of their type; those of dividends have a second half for negative divisors.
    """
    f32 = np.float32
    first, second = (f32(s.scale) for s in pair.sources)
    m = multiplier(float(first / (second * f32(pair.result.scale))))
    least = [i32(s.limits[0]) for s in pair.sources]
    a, b = (
        te.placeholder(s, p.dtype, n)
        for s, p, n in zip(pair.shapes, pair.sources, "ab", strict=True)
    )
    dividends, rooms = (te.placeholder((512,), "int32", n) for n in ("dividends", "rooms"))
    inverses, shifts = (te.placeholder((256,), "int32", n) for n in ("inverses", "shifts"))

    def value(*at: tirx.Var) -> Any:
        divisor = b(*broadcast(at, pair.shapes[1])).astype("int32")
        half = tirx.Select(divisor < i32(pair.sources[1].zero_point), i32(256), i32(0))
        x = a(*broadcast(at, pair.shapes[0])).astype("int32") - least[0] + half
        whole = high_product(dividends[x], inverses[divisor - least[1]])
        exponent = shifts[divisor - least[1]] + rooms[x] - i32(m.shift[0])
        total = _divided_by_power(high_product(whole, i32(m.value[0])), exponent)
        return stored(total, pair.result.zero_point, pair.low, pair.high, pair.result.dtype)

    out = te.compute(pair.output_shape, value, name="out")
    return for_any(prim_func([a, b, dividends, rooms, inverses, shifts, out]))


def _divided_by_power(x: tirx.Expr, exponent: tirx.Expr) -> Any:
    """``RoundingDivideByPOT`` on x86: beyond 31 it shifts modulo 32, and adds 1 from 0 on."""
    by = tirx.bitwise_and(exponent, i32(31)).astype("int64")
    bit = tirx.shift_right(
        i64(1), tirx.bitwise_and(tirx.shift_right(exponent, i32(5)), i32(1)).astype("int64")
    )
    half = tirx.shift_right(tirx.shift_left(bit, by), i64(1))
    wide = x.astype("int64")
    sign = tirx.shift_right(wide, i64(63)) * te.min(by, i64(1))
    more = (i64(1) - bit) * (i64(1) + tirx.shift_right(wide, i64(63)))
    return (tirx.shift_right(wide + half + sign * bit, by) + more).astype("int32")


def inverse_of_half(half: te.Tensor) -> Any:
    """Return 1 / (1 + f) in Q0.31 for ``half`` = (1 + f) / 2 in Q0.31, stage by stage."""
    shape = tuple(int(extent) for extent in half.shape)
    guess = te.compute(
        shape,
        lambda *at: i32(1515870810) + high_product(half(*at), i32(-1010580540)),
        name="guess0",
    )
    for step in range(1, 4):
        guess = te.compute(shape, _newton(half, guess), name=f"guess{step}")
    return te.compute(
        shape,
        lambda *at: te.min(
            tirx.shift_left(guess(*at).astype("int64"), i64(1)), i64((1 << 31) - 1)
        ).astype("int32"),
        name="inverse",
    )


def _newton(half: te.Tensor, guess: te.Tensor) -> Any:
    def step(*at: tirx.Var) -> Any:
        rest = i32(1 << 29) - high_product(half(*at), guess(*at))
        return guess(*at) + tirx.shift_left(high_product(guess(*at), rest), i32(2))

    return step
