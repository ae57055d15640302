"""Seeded inputs of a network: within what they index, states as they are at first."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tvm

from tvm_serenity.relax.attributes import STATES
from tvm_serenity.validation.ranges import input_ranges, parameters_of


def random_inputs(
    module: tvm.IRModule, seed: int = 0, function: str = "main"
) -> list[np.ndarray[Any, Any]]:
    """Return seeded inputs for the parameters of a module's function.

    Standard normal floats; integers over the whole range of their type, or within what they index.
    """
    rng = np.random.default_rng(seed)
    parameters = parameters_of(module[function])
    allowed = {}
    if any(np.dtype(dtype).kind in "iu" and dtype[-1] != "8" for _, _, dtype in parameters):
        allowed = input_ranges(module, function)  # 8 bits index nothing, as importers go
    result = []
    for position, (_, shape, name) in enumerate(parameters):
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


def states_of(module: tvm.IRModule, function: str = "main") -> tuple[int, ...]:
    """Return what fills each state at first: the last parameters and results are states."""
    return tuple(int(v) for v in (module[function].attrs or {}).get(STATES, ()))


def network_inputs(
    module: tvm.IRModule, seed: int = 0, results: Sequence[np.ndarray[Any, Any]] | None = None
) -> list[np.ndarray[Any, Any]]:
    """Return seeded inputs; states are as at first, or as the ``results`` of a run left them."""
    inputs, states = random_inputs(module, seed), states_of(module)
    first = len(inputs) - len(states)
    for i, value in enumerate(states):
        if results is None:
            inputs[first + i] = np.full_like(inputs[first + i], value)
        else:
            inputs[first + i] = results[len(results) - len(states) + i]
    return inputs
