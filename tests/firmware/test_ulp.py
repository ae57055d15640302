"""What floats of a whole network may be off."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import te

from tvm_serenity.firmware.ulp import DRIFT, ULP_LIMIT, close, ulps
from tvm_serenity.firmware.validate import rounding as rounded
from tvm_serenity.firmware.validate.kernel_reference import Reference
from tvm_serenity.firmware.validate.rounding import approximated, rounding

WANT = np.array([4.0, -1.0, 1e-3, 0.0], np.float32)


def moved(index: int, by: float) -> bool:
    """Return whether the tensor with one element moved is close."""
    got = WANT.copy()
    got[index] += np.float32(by)
    return close(got, WANT, ULP_LIMIT)


@pytest.mark.parametrize("index", range(4))
def test_what_adds_up_is_in_parts_of_the_largest(index: int) -> None:
    assert moved(index, 4 * DRIFT * 0.9)
    assert not moved(index, 4 * DRIFT * 1.1)


def test_units_in_the_last_place_count_in_small_tensors() -> None:
    want = np.array([1e30], np.float32)
    got = np.nextafter(np.nextafter(want, np.float32(np.inf)), np.float32(np.inf))
    assert close(got, want, ULP_LIMIT)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_never_close(bad: float) -> None:
    got = WANT.copy()
    got[2] = bad
    assert not close(got, WANT, ULP_LIMIT)
    assert close(got, got, ULP_LIMIT) or np.isnan(bad)
    assert not close(WANT, got, ULP_LIMIT)


def test_a_scalar_stays_one() -> None:
    found = ulps(np.array(-1.5, np.float32), np.array(1.5, np.float32))
    assert found.shape == ()
    assert found == 2 * int(np.array(1.5, np.float32).view(np.int32))


X, Y = te.placeholder((64,), "float32", "x"), te.placeholder((64,), "float32", "y")
SMALL = np.linspace(1e-4, 0.2, 64).astype(np.float32)
ONES = np.ones(64, np.float32)


def kernel(form: Callable[[Any, Any], Any]) -> Reference:
    """TVM's kernel of what ``form`` says of an element of ``X`` and one of ``Y``."""
    result = te.compute((64,), lambda i: form(X[i], Y[i]))
    return Reference("kernel", te.create_prim_func([X, Y, result]), (0, 1), (2,))


def computed(reference: Reference) -> Any:
    made = tvm.compile(reference.source.with_attr("global_symbol", "kernel"), "llvm")
    return reference.results(made["kernel"], [SMALL, ONES])


def test_functions_that_libraries_round_differently_are_counted() -> None:
    assert approximated(kernel(lambda x, y: x * y).source) == 0
    assert approximated(kernel(lambda x, y: te.sqrt(te.floor(x))).source) == 0
    gates = kernel(lambda x, y: te.sigmoid(x) * y + te.sigmoid(y) * te.tanh(x))
    assert approximated(gates.source) == 3


@pytest.mark.parametrize(
    "form",
    [
        lambda x, y: x - te.tanh(x) * y,
        lambda x, y: te.exp(x) - te.exp(x) * y,
        lambda x, y: te.sigmoid(x) * te.tanh(x),
    ],
)
def test_what_is_left_of_a_function_is_what_its_rounding_moves(
    form: Callable[[Any, Any], Any],
) -> None:
    """By each function a unit off, up or down, and no further."""
    reference = kernel(form)
    expected = computed(reference)
    (units,) = rounding(reference, [SMALL, ONES], expected)
    count, up = approximated(reference.source), 1 + 2.0**-23
    off = [computed(_scaled(reference, n, up)) for n in range(count)]
    summed = sum(np.abs(got[0].astype(np.float64) - expected[0]) for got in off)
    noise = 2.0**-23 * np.abs(SMALL.astype(np.float64) + 1)  # what is rounded after the function
    assert (summed <= units + noise).all()
    wrong = computed(_scaled(reference, 0, 1 + 2.0**-16))[0].astype(np.float64)
    assert (np.abs(wrong - expected[0]) > 3 * units)[SMALL > 0.01].all()


def test_a_tangent_is_as_far_off_as_tvms_is() -> None:
    """TVM's tanh is 1.5e-8 off near 0, on both sides: numpy's is within what is allowed."""
    reference = kernel(lambda x, y: (x * y - te.tanh(x * y)) * y)
    near = np.concatenate([np.geomspace(1e-6, 0.3, 32), -np.geomspace(1e-6, 0.3, 32)])
    x = near.astype(np.float32)
    function = tvm.compile(reference.source.with_attr("global_symbol", "kernel"), "llvm")
    expected = reference.results(function["kernel"], [x, ONES])
    (units,) = rounding(reference, [x, ONES], expected)
    own = (x - np.tanh(x)).astype(np.float64)
    last = np.spacing(np.abs(x)).astype(np.float64)
    assert (np.abs(own - expected[0]) <= 3 * units + last).all()
    assert (np.abs(own - expected[0]) > 1e-8).any()
    assert (units < 6e-8).all()


def _scaled(reference: Reference, number: int, factor: float) -> Reference:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounded, "MOVED", factor - 1)
        return replace(reference, source=rounded.moved(reference.source, number))
