"""Compiled networks: run on batches of one size."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from numpy.typing import ArrayLike, NDArray

from tvm_serenity.errors import InputError
from tvm_serenity.sparse.constants import folded
from tvm_serenity.sparse.execute.kernel import kernel, lanes
from tvm_serenity.sparse.execute.plan import Groups
from tvm_serenity.sparse.network import FFNN, Ints

Array = NDArray[np.float32]

LINE = 64
"""Bytes of a cache line."""
NUMPY = 16
"""Bytes after a cache line at which numpy's large arrays begin, because of malloc's header."""
REREAD = 4
"""Number of reads in place per input above which copying it to cache lines is faster (measured)."""


@dataclass(frozen=True)
class LoopChoice:
    """The blocking of a network: ``rows`` of sources, ``tile`` of the batch.

    ``rows`` None: one block; -M: the greedy order for M values. ``staged``: inputs are copied
    before use. ``together``: neurons computed at once. ``targets``: neurons of a part of a level;
    None: all.
    """

    rows: int | None
    tile: int
    staged: bool
    together: int = 1
    targets: int | None = None


class CompiledNetwork:
    """A network that runs on batches of one size; not thread-safe.

    Its results equal the dense computation up to the rounding of float32 sums in another order.
    """

    def __init__(self, net: FFNN, plan: Groups, batch: int, tile: int, parallel: bool) -> None:
        self.net, self.batch, self.tile = net, batch, tile
        self.order: Ints | None = None
        self.choice: LoopChoice | None = None
        self.padded = -(-batch // tile) * tile
        self._kernel = kernel(self.padded, tile, lanes(), parallel, plan.together)
        values = np.zeros((self.padded // tile, plan.slots, tile), dtype=np.float32)
        self._values = tvm.runtime.tensor(values)
        self._plan = [tvm.runtime.tensor(array) for array in plan.arrays()]
        self._lined: Array | None = None
        if plan.input_loads > REREAD * len(net.inputs):
            self._lined = aligned((len(net.inputs), self.padded))
        self._copied = [
            (place, int(np.flatnonzero(net.inputs == neuron)[0]))
            for place, neuron in enumerate(net.outputs.tolist())
            if neuron in set(net.inputs.tolist())
        ]
        fold = folded(net)
        self._fixed = [
            (place, float(fold.values[neuron]))
            for place, neuron in enumerate(net.outputs.tolist())
            if not fold.varies[neuron]
        ]

    def __call__(self, inputs: ArrayLike) -> Array:
        """Return the outputs, ``(batch, outputs)``, for ``(batch, inputs)``."""
        rows = np.asarray(inputs, dtype=np.float32)
        if rows.ndim != 2:
            raise InputError(f"the inputs have shape {rows.shape}; expected (batch, inputs)")
        return np.ascontiguousarray(self.columns(rows.T).T)

    def columns(self, inputs: ArrayLike) -> Array:
        """Return the outputs, ``(outputs, batch)``, for ``(inputs, batch)``: no transposes."""
        x = np.ascontiguousarray(inputs, dtype=np.float32)
        expected = (len(self.net.inputs), self.batch)
        if x.shape != expected:
            raise InputError(f"inputs have shape {x.shape}, expected {expected} by columns")
        if self.padded != self.batch:
            x = np.pad(x, ((0, 0), (0, self.padded - self.batch)))
        out = np.empty((len(self.net.outputs), self.padded), dtype=np.float32)
        self._kernel(self._readable(x), self._values, _shared(out), *self._plan)
        for place, column in self._copied:
            out[place] = x[column]
        for place, value in self._fixed:
            out[place] = value
        return out[:, : self.batch]

    def _readable(self, x: Array) -> Any:
        """Return the inputs for the kernel, copied to cache lines where that is faster."""
        shared = _shared(x)
        if self._lined is None or shared.data_ptr() % LINE == 0:
            return shared
        self._lined[:] = x
        return _shared(self._lined)


def aligned(shape: tuple[int, ...], past: int = 0) -> Array:
    """Return an array that begins at a cache line, where inputs are read fastest.

    ``past``: begin this many bytes (a multiple of 4) after a cache line.
    """
    size = int(np.prod(shape))
    space = np.empty(size + LINE // 4, dtype=np.float32)
    begin = (past - space.ctypes.data) % LINE // 4
    return space[begin : begin + size].reshape(shape)


def _shared(array: Array) -> Any:
    """Return ``array`` as a TVM tensor on the same memory."""
    return tvm_ffi.from_dlpack(array, require_alignment=4)
