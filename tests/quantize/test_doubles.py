"""Integer multipliers that round as a product in float64 does, checked on every sum."""

import numpy as np
import pytest

from tvm_serenity.quantize.doubles import exact_single, in_double
from tvm_serenity.quantize.fixed import multiplier, scaled


@pytest.mark.parametrize(
    "reals", [[0.25, 0.125, 3 / 64], [0.0123, 0.00231, 0.3], [1.0, 2.0, 0.5], [7.3e-3, 1 / 3, 0.2]]
)
def test_integers_round_as_doubles_do(reals: list[float]) -> None:
    found = exact_single(np.asarray(reals), -128, 127)
    assert found is not None
    sums = np.arange(-70_000, 70_000)
    for value, shift, real in zip(found.value, found.shift, reals, strict=True):
        wanted = np.clip(in_double(sums, np.asarray(real)), -128, 127)
        assert np.array_equal(np.clip(scaled(sums, value, shift, "single"), -128, 127), wanted)


def test_the_nearest_multiplier_alone_does_not() -> None:
    half = multiplier(0.25)
    sums = np.arange(-70_000, 70_000)
    nearest = scaled(sums, half.value[0], half.shift[0], "single")
    assert not np.array_equal(nearest, in_double(sums, np.asarray(0.25)))


def test_results_of_many_steps_are_left_to_doubles() -> None:
    assert exact_single(np.asarray([0.25]), -(1 << 15), (1 << 15) - 1) is None
