"""Instrumented runs on the Relax VM: results, order of kernel calls, allocated bytes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from tvm import relax

ALLOCATE = "vm.builtin.alloc_storage"


@dataclass(frozen=True)
class Run:
    """One execution: its outputs, kernel calls and allocations.

    ``outputs``: numpy arrays. ``kernels``: names in calling order. ``storages``: the bytes of each
    storage that the VM allocated, in order.
    """

    outputs: tuple[np.ndarray[Any, Any], ...]
    kernels: tuple[str, ...]
    storages: tuple[int, ...]

    @property
    def allocated_bytes(self) -> int:
        """Bytes that the VM allocated in this execution, results included."""
        return sum(self.storages)


def run(
    executable: relax.VMExecutable | tvm.runtime.Module,
    inputs: Sequence[np.ndarray[Any, Any]],
    function: str = "main",
    poison: int | None = None,
) -> Run:
    """Execute ``function`` once on the CPU and return a record of the execution.

    ``executable``: an executable or the library it was linked into. ``poison``: a byte that fills
    each storage after allocation, so that elements that no kernel writes show in the results.
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


def _arrays(found: tvm.runtime.Tensor | Iterable[Any]) -> list[np.ndarray[Any, Any]]:
    if isinstance(found, tvm.runtime.Tensor):
        return [found.numpy()]
    return [array for part in found for array in _arrays(part)]
