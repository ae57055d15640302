"""DIV: the quotient of two 8-bit tensors, by gemmlowp's reciprocal."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tvm_serenity.kernels.records import Pair
from tvm_serenity.operators.pairs import of_two, read_pair
from tvm_serenity.operators.parts import PlainMeaning
from tvm_serenity.operators.plain import FLOATS, activated, nonzero
from tvm_serenity.operators.record import elementwise
from tvm_serenity.operators.scene import EIGHT, Array, Calls, Expr, Scene
from tvm_serenity.operators.table_bounds import check_dividends, check_inverses
from tvm_serenity.quantize import lookups
from tvm_serenity.quantize.fixed import divided_by_power, high_product, multiplier
from tvm_serenity.quantize.gemmlowp import leading_zeros, reciprocal

_ACTIVATION = 0


def _read(scene: Scene) -> Pair:
    return read_pair(scene, EIGHT, _ACTIVATION)


def _compute(op: Pair, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels import fixed_pairs

    dividend, divisor = op.sources
    shifted, inverses = lookups.dividends(dividend), lookups.inverses(divisor)
    check_dividends("DIV", *shifted, dividend)
    check_inverses("DIV", *inverses, divisor)
    return calls.kernel("q_div", fixed_pairs.quotient(op), *values, *shifted, *inverses)


def _value(op: Pair, a: Array, b: Array) -> Array:
    """``DivElementwise``: the dividend, fully shifted left, times the reciprocal of the divisor.

    A divisor of 0 counts as 1.
    """
    f32 = np.float32
    first, second = (f32(source.scale) for source in op.sources)
    m = multiplier(float(first / (second * f32(op.result.scale))))
    x, y = np.where(b < 0, -a, a), np.maximum(np.abs(b), 1)
    inverse, over = reciprocal(y, 31)
    head = leading_zeros(np.where(x < 0, ~x, x)) - 1
    quotient = high_product(high_product(x << head, inverse), m.value[0])
    return _divided_by_power(quotient, over + head - m.shift[0])


def _divided_by_power(x: Array, exponent: Array) -> Array:
    """``RoundingDivideByPOT`` on x86, where 64 bits shift modulo 64 and 32 bits modulo 32.

    Beyond 31 its mask has all bits, so that all values from 0 on are rounded up.
    """
    by = exponent & 31
    return np.where(exponent & 32, (x >> by) + (x >= 0), divided_by_power(x, by))


def _plain(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    (x, y), dtype = values, scene.dtype(0)
    if dtype not in FLOATS:
        y = nonzero(calls, y, dtype)
    return activated(calls, calls.apply("divide", x, y), scene.options.u8(_ACTIVATION))


_FACTS = replace(
    elementwise("DIV", "Div", relax="divide", relay="divide", real=np.divide),
    numbers=PlainMeaning(form=_plain),
)
OPERATORS = (of_two(_FACTS, _read, _compute, _value),)
