"""Test inputs for a model, from type, shape and zero point of each input."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Fill = int | str
"""The content of inputs: random numbers of a seed, or "min", "max", or "zero" (the zero point)."""


def filled(shape: Iterable[int], dtype: npt.DTypeLike, zero: int, fill: Fill, index: int) -> Array:
    """Return the ``index``-th input of a model, of ``shape`` and ``dtype``, filled by ``fill``."""
    extents, kind = tuple(int(e) for e in shape), np.dtype(dtype)
    rng = np.random.default_rng([fill, index] if isinstance(fill, int) else 0)
    if kind.kind == "b":
        return (
            rng.random(extents) < 0.5 if isinstance(fill, int) else np.full(extents, fill == "max")
        )
    if kind.kind == "f":
        if isinstance(fill, int):
            return np.asarray(rng.uniform(-2, 2, extents), kind)
        return np.full(extents, {"min": -1e3, "max": 1e3, "zero": 0.0}[fill], kind)
    limits = np.iinfo(kind)
    if isinstance(fill, int):
        return np.asarray(rng.integers(limits.min, limits.max, extents, kind, endpoint=True))
    return np.full(extents, {"min": limits.min, "max": limits.max, "zero": zero}[fill], kind)
