"""The Relax VM, run and watched: results, the kernels it calls in order, the bytes it allocates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_serenity.frontends.relax._states import STATES
from tvm_serenity.validation.ranges import input_ranges, parameters_of

ALLOCATE = "vm.builtin.alloc_storage"


@dataclass(frozen=True)
class Run:
    """One execution: ``outputs`` as numpy arrays, ``kernels`` in the order they were called,

    ``storages`` the bytes of every storage the VM allocated, in order.
    """

    outputs: tuple[np.ndarray[Any, Any], ...]
    kernels: tuple[str, ...]
    storages: tuple[int, ...]

    @property
    def allocated_bytes(self) -> int:
        """The bytes the VM allocated in this execution, results included."""
        return sum(self.storages)


def run(
    executable: Any,
    inputs: Sequence[np.ndarray[Any, Any]],
    function: str = "main",
    poison: int | None = None,
) -> Run:
    """Execute ``function`` once on the CPU and return what happened, from the VM's own hook.

    ``executable``: or the library it was linked to. ``poison``: a byte that fills every storage
    right after it was allocated: what a kernel does not write is garbage in the results.
    """
    machine = relax.VirtualMachine(executable, tvm.cpu())
    kernels: list[str] = []
    storages: list[int] = []

    def watch(_function: Any, name: str, before: bool, result: Any, *arguments: Any) -> None:
        if name == ALLOCATE:
            size = int(np.prod([int(extent) for extent in arguments[1]]))
            if before:
                storages.append(size)
            elif poison is not None and size:
                _fill(result, size, poison)
        elif before and not name.startswith("vm."):
            kernels.append(name)

    machine.set_instrument(watch)
    found = machine[function](*(tvm.runtime.tensor(array) for array in inputs))
    return Run(tuple(_arrays(found)), tuple(kernels), tuple(storages))


def _fill(storage: Any, size: int, poison: int) -> None:
    make = tvm.get_global_func("vm.builtin.alloc_tensor")
    whole = make(storage, 0, tvm.runtime.ShapeTuple([size]), tvm.DataType("uint8"))
    whole.copyfrom(np.full(size, poison, np.uint8))


def random_inputs(module: Any, seed: int = 0, function: str = "main") -> list[np.ndarray[Any, Any]]:
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


def states_of(module: Any, function: str = "main") -> tuple[int, ...]:
    """Return what fills each state at first: the last parameters and results are states."""
    return tuple(int(v) for v in (module[function].attrs or {}).get(STATES, ()))


def network_inputs(
    module: Any, seed: int = 0, results: Sequence[np.ndarray[Any, Any]] | None = None
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


def compare(
    left: Sequence[np.ndarray[Any, Any]], right: Sequence[np.ndarray[Any, Any]]
) -> Mapping[str, Any]:
    """Return whether two results are bit-identical, and the largest absolute difference."""
    same = len(left) == len(right) and all(
        a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
        for a, b in zip(left, right, strict=True)
    )
    largest = max(
        (
            float(np.max(np.abs(a.astype(np.float64) - b.astype(np.float64)), initial=0.0))
            for a, b in zip(left, right, strict=True)
        ),
        default=0.0,
    )
    return {"identical": same, "max_abs_error": largest}


def _arrays(found: Any) -> list[np.ndarray[Any, Any]]:
    if isinstance(found, tvm.runtime.Tensor):
        return [found.numpy()]
    return [array for part in found for array in _arrays(part)]
