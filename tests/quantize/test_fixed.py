"""The fixed-point arithmetic against exact integers."""

from typing import Any

import numpy as np
import pytest
import tvm
from hypothesis import given
from hypothesis import strategies as st
from tvm import te

from tvm_serenity.kernels.arithmetic import finished
from tvm_serenity.kernels.records import Requantise
from tvm_serenity.quantize.fixed import (
    Multiplier,
    divided_by_power,
    high_product,
    multiplier,
    scaled,
)

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


@pytest.mark.parametrize("most", [0, -1, 3])
def test_kernels_scale_sums_of_any_size_by_any_shift(most: int) -> None:
    """Dead channels of trained networks have shifts down to -31 and a bias near 2^31."""
    rng = np.random.default_rng(17)
    shifts = np.concatenate([np.arange(-31, 1 + min(most, 0)), rng.integers(-31, most + 1, 200)])
    values = rng.integers(1 << 30, 1 << 31, shifts.size)
    limit = (1 << 31 >> np.maximum(shifts, 0)) - 1
    parts = (-1, -0.6, -1e-8, 0, 1e-9, 0.6, 1)
    sums = np.stack([(limit * part).astype(np.int32) for part in parts])
    m = Multiplier(tuple(values.tolist()), tuple(shifts.tolist()), ())
    spec = Requantise(m, 0, -(1 << 31), (1 << 31) - 1, "int32", "tflite")
    x, v, s = (te.placeholder(a.shape, a.dtype) for a in _constants(sums, values, shifts))
    scale = finished(spec, [v, s] if len(shifts) > 1 else [])
    made = te.compute(x.shape, lambda i, c: scale(x[i, c], c))
    kernel = tvm.compile(te.create_prim_func([x, v, s, made]), target="llvm")
    out = tvm.runtime.tensor(np.zeros(sums.shape, np.int32))
    kernel(*(tvm.runtime.tensor(a) for a in _constants(sums, values, shifts)), out)
    assert (out.numpy() == scaled(sums, values, shifts)).all()


def _constants(*arrays: Any) -> list[Any]:
    return [a.astype(d) for a, d in zip(arrays, ("int32", "int32", "int8"), strict=True)]
