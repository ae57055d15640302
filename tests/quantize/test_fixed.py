"""The fixed-point arithmetic against exact integers."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tvm_serenity.quantize.fixed import divided_by_power, high_product, multiplier, scaled

VALUES = st.integers(-(1 << 28), 1 << 28)
REALS = st.floats(1e-7, 0.999)


@given(VALUES, REALS)
def test_one_rounding_is_exact(x: int, real: float) -> None:
    m = multiplier(real)
    (value,), (shift,) = m.value, m.shift
    assert abs(value * 2.0 ** (shift - 31) - real) <= real * 2.0**-30
    right = 31 - shift
    assert int(scaled(x, value, shift, "single")) == (x * value + (1 << (right - 1))) >> right


@given(VALUES, REALS)
def test_two_roundings_are_at_most_a_step_from_one(x: int, real: float) -> None:
    m = multiplier(real)
    twice = int(scaled(x, m.value[0], m.shift[0]))
    assert abs(twice - int(scaled(x, m.value[0], m.shift[0], "single"))) <= 1


@given(VALUES, st.integers(0, 20))
def test_division_rounds_halves_away_from_zero(x: int, exponent: int) -> None:
    size = (abs(x) * 2 + (1 << exponent)) >> (exponent + 1) if exponent else abs(x)
    assert int(divided_by_power(x, exponent)) == (size if x >= 0 else -size)


def test_multipliers_at_the_ends() -> None:
    assert multiplier(1.0).value == (1 << 30,)
    assert multiplier(0.0).value == (0,)
    assert multiplier(1e-12).value == (0,)
    assert len(multiplier([0.1, 0.2]).value) == 2
    assert int(high_product(np.int64(1 << 30), np.int64(1 << 30))) == 1 << 29
