"""The Relax VM, run and watched: results, the kernels it calls in order, the bytes it allocates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from tvm import relax

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


def run(executable: Any, inputs: Sequence[np.ndarray[Any, Any]], function: str = "main") -> Run:
    """Execute ``function`` once on the CPU and return what happened, from the VM's own hook."""
    machine = relax.VirtualMachine(executable, tvm.cpu())
    kernels: list[str] = []
    storages: list[int] = []

    def watch(_function: Any, name: str, before: bool, _result: Any, *arguments: Any) -> None:
        if not before:
            return
        if name == ALLOCATE:
            storages.append(int(np.prod([int(extent) for extent in arguments[1]])))
        elif not name.startswith("vm."):
            kernels.append(name)

    machine.set_instrument(watch)
    found = machine[function](*(tvm.runtime.tensor(array) for array in inputs))
    return Run(tuple(_arrays(found)), tuple(kernels), tuple(storages))


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
