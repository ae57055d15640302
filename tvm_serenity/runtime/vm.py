"""The Relax VM, run and watched: results, the kernels it calls in order, the bytes it allocates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from tvm import relax

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

    Standard normal floats; integers over the whole range of their type.
    """
    rng = np.random.default_rng(seed)
    result = []
    for param in module[function].params:
        shape = [int(extent) for extent in param.ty.shape.values]
        dtype = np.dtype(str(param.ty.dtype.dtype))
        if dtype.kind == "f":
            result.append(rng.standard_normal(shape).astype(dtype))
        elif dtype.kind == "b":
            result.append(rng.random(shape) < 0.5)
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
