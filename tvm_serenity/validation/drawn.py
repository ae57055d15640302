"""Seeded inputs of a network: within what they index, states as they are at first."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tvm

from tvm_serenity.relax.attributes import STATES
from tvm_serenity.validation.draws import drawn_inputs
from tvm_serenity.validation.inputs import Range
from tvm_serenity.validation.ranges import input_ranges, parameters_of


def random_inputs(
    module: tvm.IRModule, seed: int = 0, function: str = "main"
) -> list[np.ndarray[Any, Any]]:
    """Return seeded inputs for the parameters of a module's function.

    Standard normal floats; integers over the whole range of their type, or within what they index.
    """
    parameters = parameters_of(module[function])
    known = [(shape, dtype) for _, shape, dtype in parameters]
    return drawn_inputs(known, allowed_inputs(module, function), seed)


def allowed_inputs(module: tvm.IRModule, function: str = "main") -> dict[int, Range]:
    """Return what integers among the parameters of a function must lie within, by position."""
    types = [dtype for _, _, dtype in parameters_of(module[function])]
    if any(np.dtype(dtype).kind in "iu" and dtype[-1] != "8" for dtype in types):
        return input_ranges(module, function)  # 8 bits index nothing, as importers go
    return {}


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
