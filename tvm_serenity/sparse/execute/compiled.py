"""Compiled networks: made for an order, a batch and a tile of it; the tuned choice of these."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from numpy.typing import ArrayLike, NDArray

from tvm_serenity.errors import InputError
from tvm_serenity.sparse.check import check_order
from tvm_serenity.sparse.constants import folded
from tvm_serenity.sparse.execute.kernel import kernel, lanes
from tvm_serenity.sparse.execute.plan import Groups, blocked, groups
from tvm_serenity.sparse.network import FFNN, Ints
from tvm_serenity.sparse.orders.greedy import resident

LARGEST_TILE = 8
"""Vectors of a tile: as many sums as stay in registers."""
ROWS = (None, 32, 48, 64, 96, 128, 192, 256, 512)
"""Sources of a block that are tried."""
FEW = 8
"""Connections a neuron up to which greedy orders are tried: sums are then seldom split."""
MEMORIES = (64, 96, 192)
"""Values of fast memory for those: what the first cache holds of the batch."""
REPEATS = 5

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Choice:
    """How a network was blocked: ``rows`` of sources, ``tile`` of the batch.

    ``rows`` None: one block; -M: the greedy order for M values. ``staged``: inputs are copied
    before they are used.
    """

    rows: int | None
    tile: int
    staged: bool


class Compiled:
    """A network that runs on batches of one size; not for several threads of the caller at once.

    Equal to the dense computation up to the rounding of float32 sums in another order.
    """

    def __init__(self, net: FFNN, plan: Groups, batch: int, tile: int, parallel: bool) -> None:
        width = lanes()
        self.net, self.batch, self.tile = net, batch, tile
        self.order: Ints | None = None
        self.choice: Choice | None = None
        self.padded = -(-batch // tile) * tile
        self._kernel = kernel(self.padded, tile, width, parallel)
        values = np.zeros((self.padded // tile, plan.slots, tile), dtype=np.float32)
        arrays = (plan.first, plan.target, plan.flags, plan.place)
        arrays += (plan.source, plan.weight, plan.bias)  # type: ignore[assignment]
        self._values = tvm.runtime.tensor(values)
        self._plan = [tvm.runtime.tensor(np.ascontiguousarray(array)) for array in arrays]
        self._staged = plan.staged
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
            raise InputError(f"inputs have shape {rows.shape}: (batch, inputs) is expected")
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
        self._kernel(_shared(x), self._values, _shared(out), *self._plan, self._staged)
        for place, column in self._copied:
            out[place] = x[column]
        for place, value in self._fixed:
            out[place] = value
        return out[:, : self.batch]


def compile(
    net: FFNN,
    order: ArrayLike | None = None,
    batch: int = 128,
    *,
    tile: int | None = None,
    staged: bool = False,
    threads: int = 1,
) -> Compiled:
    """Return ``net`` compiled to compute its connections in ``order`` for ``batch`` at a time.

    ``order=None`` is :func:`tuned`. ``tile``: columns at a time (default: as many as fit in
    registers). ``staged``: inputs are copied to aligned tiles first. ``threads`` above 1 splits
    the batch over TVM's threads. Raises :class:`InputError` for an order that is not topological
    or a batch or tile that is not positive.
    """
    _check(batch, threads)
    if order is None:
        return tuned(net, batch, threads=threads)
    checked = check_order(net, order)
    chosen = tile or max(_tiles(batch, threads))
    if chosen % lanes() or not 0 < chosen <= lanes() * LARGEST_TILE:
        raise InputError(
            f"tile {chosen}: a multiple of {lanes()}, at most {lanes() * LARGEST_TILE}"
        )
    made = Compiled(net, groups(net, checked, staged), batch, chosen, threads > 1)
    made.order = checked
    return made


def tuned(net: FFNN, batch: int = 128, *, threads: int = 1, repeats: int = REPEATS) -> Compiled:
    """Return the fastest of some blocked orders and tiles, measured here and now.

    The result computes the same whatever the timing says, up to the order of its sums.
    """
    _check(batch, threads)
    x = np.random.RandomState(0).standard_normal((len(net.inputs), batch)).astype(np.float32)
    best, least = None, np.inf
    for rows, order in _orders(net):
        for tile, staged in product(_tiles(batch, threads), (False, True)):
            made = compile(net, order, batch, tile=tile, staged=staged, threads=threads)
            seconds = measure(lambda made=made: made.columns(x), repeats)
            if seconds < least:
                best, least = made, seconds
                best.choice = Choice(rows, tile, staged)
    assert best is not None
    return best


def _orders(net: FFNN) -> Iterator[tuple[int | None, Ints]]:
    """Yield blocked orders; for nets of few connections those few values are alive in, too."""
    sources = int(np.bincount(net.levels).max())
    for rows in ROWS:
        if rows is None or rows < sources:
            yield rows, blocked(net, rows)
    if net.connections <= FEW * net.neurons:
        for memory in MEMORIES:
            order = resident(net, memory)
            if order is not None:
                yield -memory, order


def measure(run: Any, repeats: int = REPEATS, least_s: float = 0.002) -> float:
    """Return the seconds of one call: the least of ``repeats`` rounds."""
    run()
    begin = time.perf_counter()
    run()
    calls = max(1, int(least_s / max(1e-7, time.perf_counter() - begin)))
    rounds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        for _ in range(calls):
            run()
        rounds.append((time.perf_counter() - begin) / calls)
    return min(rounds)


def _check(batch: int, threads: int) -> None:
    if batch < 1:
        raise InputError(f"batch {batch}: at least 1")
    if threads < 1:
        raise InputError(f"{threads} threads: at least 1")


def _tiles(batch: int, threads: int) -> list[int]:
    width = lanes()
    share = -(-batch // threads)
    found = {width} | {width * n for n in (2, 4, LARGEST_TILE) if width * n < 2 * share}
    return sorted(found, reverse=True)[:3]


def _shared(array: Array) -> Any:
    """Return ``array`` as a TVM tensor on the same memory."""
    return tvm_ffi.from_dlpack(array, require_alignment=4)
