"""Seeded weights."""

import math
from typing import Any

import numpy as np

from tvm_serenity.errors import InputError

MAX_WEIGHTS = 1 << 27  # elements of all constants together: 512 MiB of float32


class WeightStream:
    """A stream of float32 constants; the same seed and draws give the same values."""

    def __init__(self, seed: int) -> None:
        # RandomState is the one generator whose stream NumPy keeps frozen.
        self._random = np.random.RandomState(seed)
        self._drawn = 0

    def uniform(self, shape: tuple[int, ...], half_range: float) -> np.ndarray[Any, Any]:
        """Return an array uniform in [-half_range, half_range), at most ``MAX_WEIGHTS`` in all."""
        self._drawn += math.prod(shape)
        if self._drawn > MAX_WEIGHTS:
            raise InputError(
                f"the network has more than the {MAX_WEIGHTS} weights allowed; lower its channels, "
                "cells or n"
            )
        values = self._random.random_sample(shape) * 2.0 - 1.0
        return (values * half_range).astype(np.float32)
