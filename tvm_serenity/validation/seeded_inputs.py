"""Seeded inputs of a network, drawn from the shapes and types of its parameters alone."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tvm_serenity.validation.inputs import Range

Array = np.ndarray[Any, Any]


def drawn_inputs(
    parameters: Sequence[tuple[tuple[int, ...], str]], allowed: Mapping[int, Range], seed: int
) -> list[Array]:
    """Return an array for each of ``parameters``, which are shapes and types.

    Floats are standard normal; integers cover their type, or the range ``allowed`` at their
    position.
    """
    rng = np.random.default_rng(seed)
    result = []
    for position, (shape, name) in enumerate(parameters):
        dtype = np.dtype(name)
        if position in allowed:
            held = allowed[position]
            drawn = rng.integers(held.low, held.high, shape, np.int64, endpoint=True)
            result.append(np.asarray(drawn, dtype))
        elif dtype.kind == "f":
            result.append(np.asarray(rng.standard_normal(shape), dtype))
        elif dtype.kind == "b":
            result.append(np.asarray(rng.random(shape) < 0.5))
        else:
            limits = np.iinfo(dtype)
            result.append(rng.integers(limits.min, limits.max, shape, dtype, endpoint=True))
    return result
