"""Draws weights from a seeded random generator."""

import math
from typing import Any

import numpy as np

from tvm_serenity.errors import InputError

MAX_WEIGHTS = 1 << 27  # Limit on the elements of all constants of a network: 512 MiB of float32.


class WeightStream:
    """A stream of float32 constants; the same seed and calls give the same values."""

    def __init__(self, seed: int) -> None:
        # RandomState is the only generator whose stream NumPy does not change.
        self._random = np.random.RandomState(seed)
        self._drawn = 0

    def uniform(self, shape: tuple[int, ...], half_range: float) -> np.ndarray[Any, Any]:
        """Return an array that is uniform in [-half_range, half_range).

        Raises :class:`InputError` if more than ``MAX_WEIGHTS`` weights are drawn in total.
        """
        self._drawn += math.prod(shape)
        if self._drawn > MAX_WEIGHTS:
            raise InputError(
                f"the network has more than {MAX_WEIGHTS} weights; lower its channels, cells or n"
            )
        values = self._random.random_sample(shape) * 2.0 - 1.0
        return (values * half_range).astype(np.float32)
