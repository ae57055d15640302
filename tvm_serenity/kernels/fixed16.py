"""TIR expressions of ``tvm_serenity.quantize.fixed16``, with named subexpressions."""

from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T  # noqa: N812

from tvm_serenity.kernels.arithmetic import divided_by_power, i32
from tvm_serenity.quantize.fixed16 import (
    EXP_EIGHTH,
    LEAST_EXPONENT,
    ONE,
    POWERS,
    QUOTIENT,
    THIRD,
)


def named(value: tirx.Expr, dtype: str = "int32") -> Any:
    """Return ``value`` of ``dtype`` in a variable, so that it is computed once.

    TVM would substitute a bound variable (``T.bind``) at each of its uses.
    """
    held = T.alloc_buffer((1,), dtype)
    T.buffer_store(held, value, [0])
    return held[0]


def product(a: tirx.Expr, b: tirx.Expr) -> Any:
    """Return ``round(a * b / 2**15)`` of two values that are not both -1."""
    return named(tirx.shift_right(a * b + i32(1 << 14), i32(15)))


def exp_on_negative(a: tirx.Expr, bits: int) -> Any:
    """Return ``exp(a)`` of ``a <= 0`` with ``bits`` integer bits."""
    quarter = 1 << (13 - bits)
    within = named(tirx.bitwise_and(a, i32(quarter - 1)) - i32(quarter))
    x = named(tirx.shift_left(within, i32(bits)) + i32(1 << 12))
    x2 = product(x, x)
    x3, x4 = product(x2, x), divided_by_power(product(x2, x2), 2)
    terms = divided_by_power(named(product(x4 + x3, i32(THIRD)) + x2), 1)
    result = named(tirx.min(i32(EXP_EIGHTH) + product(i32(EXP_EIGHTH), x + terms), i32(ONE)))
    rest = named(within - a)
    for exponent, factor in POWERS:
        if bits > exponent:
            has = tirx.bitwise_and(rest, i32(1 << (15 - bits + exponent))) != i32(0)
            result = named(tirx.Select(has, product(result, i32(factor)), result))
    if bits > 5:
        result = tirx.Select(a < i32(LEAST_EXPONENT << (15 - bits)), i32(0), result)
    return named(tirx.Select(tirx.EQ(a, i32(0)), i32(ONE), result))


def logistic(a: tirx.Expr, bits: int = 3) -> Any:
    """Return ``1 / (1 + exp(-a))`` without integer bits."""
    powers = exp_on_negative(named(-tirx.abs(a)), bits)
    positive = named(tirx.min(tirx.shift_left(_double_inverse(powers), i32(1)), i32(ONE)))
    signed = tirx.Select(a > i32(0), positive, i32(ONE) - positive)
    return named(tirx.Select(tirx.EQ(a, i32(0)), i32(1 << 14), signed))


def tanh(a: tirx.Expr, bits: int) -> Any:
    """Return ``tanh(a)`` without integer bits."""
    powers = exp_on_negative(named(-tirx.abs(a)), bits + 1)
    above = tirx.shift_left(_double_inverse(powers) - i32(1 << 13), i32(2))
    size = named(tirx.min(above, i32(ONE)))
    signed = tirx.Select(a < i32(0), -size, size)
    return named(tirx.Select(tirx.EQ(a, i32(0)), i32(0), signed))


def _double_inverse(a: tirx.Expr) -> Any:
    """Return ``2 / (1 + a)`` for ``a`` in 0..1 without integer bits; the result has two."""
    half = named(tirx.shift_right(a + i32(ONE + 1), i32(1)))
    x = named(i32(QUOTIENT[0]) + product(half, i32(QUOTIENT[1])))
    for _ in range(3):
        rest = named(i32(1 << 13) - product(half, x))
        x = named(x + tirx.shift_left(product(x, rest), i32(2)))
    return x
