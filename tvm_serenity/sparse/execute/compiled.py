"""Compiled networks, which run on batches of a fixed size."""

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
"""Size of a cache line in bytes."""
NUMPY = 16
"""Offset in bytes from a cache line at which large numpy arrays begin, due to malloc's header."""
REREAD = 4
"""Number of reads per input above which a copy to aligned memory is faster (measured)."""


@dataclass(frozen=True)
class LoopChoice:
    """The parameters of a network's loops.

    ``rows``: sources per block; None: one block; -M: no blocks, but the greedy order for M values.
    ``tile``: columns of the batch that are computed together. ``staged``: whether inputs are copied
    to slots before use. ``together``: neurons that are computed together. ``targets``: neurons per
    part of a level; None: all neurons of a level.
    """

    rows: int | None
    tile: int
    staged: bool
    together: int = 1
    targets: int | None = None


class CompiledNetwork:
    """A network that is compiled for one batch size; not thread-safe.

    Its results equal those of the dense computation, up to the rounding of float32 sums in a
    different order.
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
        """Return the outputs (batch, outputs) of the inputs (batch, inputs)."""
        rows = np.asarray(inputs, dtype=np.float32)
        if rows.ndim != 2:
            raise InputError(
                f"the inputs have shape {rows.shape}; give an array of shape (batch, inputs)"
            )
        return np.ascontiguousarray(self.columns(rows.T).T)

    def columns(self, inputs: ArrayLike) -> Array:
        """Return the outputs (outputs, batch) of the inputs (inputs, batch), without transposes."""
        x = np.ascontiguousarray(inputs, dtype=np.float32)
        expected = (len(self.net.inputs), self.batch)
        if x.shape != expected:
            raise InputError(f"the inputs have shape {x.shape}; give (inputs, batch) = {expected}")
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
        """Return ``x`` for the kernel, copied to aligned memory if that is faster."""
        shared = _shared(x)
        if self._lined is None or shared.data_ptr() % LINE == 0:
            return shared
        self._lined[:] = x
        return _shared(self._lined)


def aligned(shape: tuple[int, ...], past: int = 0) -> Array:
    """Return an uninitialised float32 array that begins ``past`` bytes after a cache line.

    ``past`` is a multiple of 4. Inputs are read fastest with 0.
    """
    size = int(np.prod(shape))
    space = np.empty(size + LINE // 4, dtype=np.float32)
    begin = (past - space.ctypes.data) % LINE // 4
    return space[begin : begin + size].reshape(shape)


def _shared(array: Array) -> Any:
    """Return a TVM tensor that shares the memory of ``array``."""
    return tvm_ffi.from_dlpack(array, require_alignment=4)
