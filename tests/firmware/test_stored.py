"""Which layers keep faster weights within a limit, beside all choices."""

import itertools
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from tests.cases import scaled
from tvm_serenity.firmware.select.stored import UNIT_BYTES, within


def form(*figures: tuple[int, int]) -> Any:
    """Calls of a form, of bytes and costs."""
    made = [SimpleNamespace(constants=(np.zeros(n, np.int8),), cost=c) for n, c in figures]
    return cast(Any, tuple(made))


def size_of(calls: Any) -> int:
    most: int = max(one.constants[0].nbytes for one in calls)
    return -(-most // UNIT_BYTES) * UNIT_BYTES


def cost_of(calls: Any) -> int:
    return min(int(one.cost) for one in calls)


@pytest.mark.parametrize("seed", range(scaled(40, 1000)))
def test_the_choice_costs_the_least_that_fits(seed: int) -> None:
    rng = np.random.default_rng(seed)

    def drawn() -> Any:
        each = int(rng.integers(1, 3))
        return form(*((int(rng.integers(1, 60)), int(rng.integers(1, 1000))) for _ in range(each)))

    forms = {2 * i: [drawn() for _ in range(rng.integers(1, 4))] for i in range(6)}
    every = list(itertools.product(*forms.values()))
    sizes = [sum(map(size_of, one)) for one in every]
    for limit in map(int, rng.integers(min(sizes) - 8, max(sizes) + 8, 6)):
        chosen = within(forms, limit)
        assert list(chosen) == list(forms)
        assert all(any(made is one for one in forms[i]) for i, made in chosen.items())
        fitting = [one for one, size in zip(every, sizes, strict=True) if size <= limit]
        total = sum(map(size_of, chosen.values()))
        if fitting:
            assert total <= limit
            assert sum(map(cost_of, chosen.values())) == min(
                sum(map(cost_of, one)) for one in fitting
            )
        else:
            assert total == min(sizes)


def test_no_layers_are_no_choice() -> None:
    assert within({}, 0) == {}
