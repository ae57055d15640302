"""ArenaExecutor: a module built for the graph executor, run in one arena with planned offsets."""

import time
from typing import Any

import numpy as np
import tvm
from tvm.runtime.module import BenchmarkResult

from tvm_serenity.errors import InputError
from tvm_serenity.plan.joint import place_order
from tvm_serenity.relay.storage import Built, graph_of, kernel_of, params_of

ALIGNMENT = 64
"""Alignment in bytes of TVM's own allocations, which kernels may assume."""


class ArenaExecutor:
    """An executor of a built module, with tensors at planned offsets in one arena.

    ``built``: the result of ``relay.build`` for the graph executor on the CPU, or its exported
    library, loaded. The interface is that of TVM's ``GraphModule``: ``set_input``, ``run``,
    ``get_output``, ``benchmark``. ``plan``: the placement of computed tensors; reshapes are views.
    Inputs and parameters have memory of their own, as in the graph executor.
    """

    def __init__(self, built: Built) -> None:
        graph = graph_of(built)
        ranges, self.plan = place_order(graph.graph, None, ALIGNMENT)
        offsets = {t: o for r, o in zip(ranges, self.plan.offsets, strict=True) for t in r.tensors}
        raw = np.zeros(self.plan.arena_bytes + ALIGNMENT, "uint8")
        self._arena = raw[-raw.ctypes.data % ALIGNMENT :]
        self._arguments, self._heads = graph.arguments, graph.heads
        self._tensors = []
        for entry, (tensor, (shape, dtype)) in enumerate(
            zip(graph.graph.tensors, graph.types, strict=True)
        ):
            if entry in offsets:
                part = self._arena[offsets[entry] : offsets[entry] + tensor.size_bytes]
                self._tensors.append(tvm.nd.from_dlpack(part.view(dtype).reshape(shape)))
            else:
                self._tensors.append(tvm.nd.empty(shape, dtype))
        for name, value in params_of(built).items():
            self._tensors[graph.arguments[name]].copyfrom(value)
        ops = [op for op in graph.graph.ops if op.view_of is None]
        self._calls = [
            (kernel_of(built, op.kind), [self._tensors[t] for t in (*op.inputs, *op.outputs)])
            for op in ops
        ]

    @property
    def arena_bytes(self) -> int:
        """Bytes allocated for computed tensors."""
        return self.plan.arena_bytes

    def set_input(self, key: Any = None, value: Any = None, **params: Any) -> None:
        """Copy a value to an input, by name or index, and ``params`` by name."""
        if key is not None:
            self.get_input(key).copyfrom(value)
        for name, array in params.items():
            self.get_input(name).copyfrom(array)

    def run(self, **inputs: Any) -> None:
        """Set ``inputs``, then run the network once."""
        self.set_input(**inputs)
        for function, arguments in self._calls:
            function(*arguments)

    def get_num_inputs(self) -> int:
        """Return the number of inputs, parameters included."""
        return len(self._arguments)

    def get_num_outputs(self) -> int:
        """Return the number of outputs."""
        return len(self._heads)

    def get_input(self, index: Any, out: tvm.nd.NDArray | None = None) -> Any:
        """Return an input by index or name, copied to ``out`` if given."""
        names = list(self._arguments)
        name = names[index] if isinstance(index, int) and 0 <= index < len(names) else index
        if name not in self._arguments:
            raise InputError(f"there is no input {index!r}: there are {', '.join(names)}")
        return _copied(self._tensors[self._arguments[name]], out)

    def get_output(self, index: int, out: tvm.nd.NDArray | None = None) -> Any:
        """Return an output, copied to ``out`` if given; the next run overwrites the output."""
        return _copied(self._tensors[self._heads[index]], out)

    def benchmark(
        self, device: Any = None, repeat: int = 5, number: int = 5, **inputs: Any
    ) -> BenchmarkResult:
        """Return the run times in seconds: ``repeat`` means of ``number`` runs each, on the CPU."""
        if device is not None and device.device_type != tvm.cpu().device_type:
            raise InputError(f"the arena is in the memory of the CPU, not of {device}")
        self.set_input(**inputs)
        results = []
        for _ in range(repeat):
            started = time.perf_counter()
            for _ in range(number):
                self.run()
            results.append((time.perf_counter() - started) / number)
        return BenchmarkResult(results)


def _copied(tensor: tvm.nd.NDArray, out: tvm.nd.NDArray | None) -> Any:
    if out is None:
        return tensor
    tensor.copyto(out)
    return out
