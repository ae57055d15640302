"""What floats of a whole network may be off."""

import numpy as np
import pytest

from tvm_serenity.firmware.ulp import DRIFT, ULP_LIMIT, close

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
