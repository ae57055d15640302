"""Seeded inputs of a Relax network: indices stay in range, states have their initial values."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import tvm

from tvm_serenity.relax.attributes import STATES
from tvm_serenity.validation.inputs import Range
from tvm_serenity.validation.ranges import input_ranges, parameters_of
from tvm_serenity.validation.seeded_inputs import drawn_inputs


def random_inputs(
    module: tvm.IRModule, seed: int = 0, function: str = "main"
) -> list[np.ndarray[Any, Any]]:
    """Return seeded inputs for the parameters of a module's function.

    Floats are standard normal; integers cover their type, or the range they may index.
    """
    return inputs_of_seeds(module, function)(seed)


def inputs_of_seeds(
    module: tvm.IRModule, function: str = "main"
) -> Callable[[int], list[np.ndarray[Any, Any]]]:
    """Return a function of the seed that is :func:`random_inputs` and derives the ranges once."""
    parameters = parameters_of(module[function])
    known = [(shape, dtype) for _, shape, dtype in parameters]
    return partial(drawn_inputs, known, allowed_inputs(module, function))


def allowed_inputs(module: tvm.IRModule, function: str = "main") -> dict[int, Range]:
    """Return the allowed range of each integer parameter that is an index, by position."""
    types = [dtype for _, _, dtype in parameters_of(module[function])]
    if any(np.dtype(dtype).kind in "iu" and dtype[-1] != "8" for dtype in types):
        return input_ranges(module, function)  # importers never index by 8-bit values
    return {}


def states_of(module: tvm.IRModule, function: str = "main") -> tuple[int, ...]:
    """Return the initial value of each state; states are the last parameters and results."""
    return tuple(int(v) for v in (module[function].attrs or {}).get(STATES, ()))


def network_inputs(
    module: tvm.IRModule, seed: int = 0, results: Sequence[np.ndarray[Any, Any]] | None = None
) -> list[np.ndarray[Any, Any]]:
    """Return seeded inputs; states are initial, or those that a run left in ``results``."""
    inputs, states = random_inputs(module, seed), states_of(module)
    first = len(inputs) - len(states)
    for i, value in enumerate(states):
        if results is None:
            inputs[first + i] = np.full_like(inputs[first + i], value)
        else:
            inputs[first + i] = results[len(results) - len(states) + i]
    return inputs
