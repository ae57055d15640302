"""What floats of a whole network may be off."""

import numpy as np
import pytest
from tvm import te

from tvm_serenity.firmware.tir.translation import functions_of
from tvm_serenity.firmware.ulp import DRIFT, ULP_LIMIT, close, ulps

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


def test_kernels_that_join_functions_may_be_off_by_each() -> None:
    x, y = te.placeholder((4,), "float32", "x"), te.placeholder((4,), "float32", "y")

    def functions(result: te.Tensor) -> int:
        return functions_of(te.create_prim_func([x, y, result]))

    assert functions(te.compute((4,), lambda i: x[i] * y[i])) == 0
    assert functions(te.compute((4,), lambda i: te.sqrt(te.floor(x[i])))) == 0
    gates = te.compute((4,), lambda i: te.sigmoid(x[i]) * y[i] + te.sigmoid(y[i]) * te.tanh(x[i]))
    assert functions(gates) == 3
