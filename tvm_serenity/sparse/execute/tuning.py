"""Compiles networks for a given order, or for the fastest of several measured orders."""

import time
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from tvm_serenity.errors import InputError
from tvm_serenity.sparse.check import check_order
from tvm_serenity.sparse.execute.blocks import blocked
from tvm_serenity.sparse.execute.compiled import NUMPY, Array, CompiledNetwork, LoopChoice, aligned
from tvm_serenity.sparse.execute.kernel import LARGEST_TILE, lanes, largest_tile
from tvm_serenity.sparse.execute.plan import Groups, groups
from tvm_serenity.sparse.execute.steps import LARGEST
from tvm_serenity.sparse.network import FFNN, Ints
from tvm_serenity.sparse.orders.greedy import resident

ROWS = (None, 64, 96, 128, 192, 256)
"""Numbers of sources per block that are tried; None: one block."""
TARGETS = (None, 1024)
"""Numbers of targets per part of a level that are tried, so that sums stay in the L2 cache."""
FEW = 8
"""Mean number of connections per neuron up to which greedy orders are tried.

Below it, greedy orders seldom split sums, and neurons that are computed together share no loads.
"""
MEMORIES = (64, 96, 192)
"""Fast memories M for which greedy orders are tried: the values of a tile that fit in L1."""
REPEATS = 5
PASSES = 2
"""Number of passes over all parameters."""
TILES = 2
"""Number of tiles that are tried, the largest ones."""
FINALISTS = 4
"""Number of choices that are measured again."""
LIMIT_S = 20.0
"""Seconds after which no further choice is measured."""


def compile(
    net: FFNN,
    order: ArrayLike | None = None,
    batch: int = 128,
    *,
    tile: int | None = None,
    staged: bool = False,
    together: int = 1,
    threads: int = 1,
) -> CompiledNetwork:
    """Return ``net`` compiled for batches of ``batch`` inputs, with its connections in ``order``.

    ``order`` None: choose the order and the other parameters by measurement (:func:`tuned`).
    ``tile``: columns of the batch that are computed together (default: as many as fit in
    registers). ``staged``: copy inputs to aligned memory shortly before they are used.
    ``together`` (1 to 3): neighbouring targets of one level that are computed together, so that a
    common source is loaded once; this interleaves their connections. ``threads`` above 1 splits the
    batch over TVM's threads. Raises :class:`InputError` if ``order`` is not topological, or if
    ``batch``, ``tile``, ``together`` or ``threads`` is out of range.
    """
    _check(batch, threads)
    if order is None:
        return tuned(net, batch, threads=threads)
    if not 1 <= together <= LARGEST:
        raise InputError(f"together={together}: the value must be 1 to {LARGEST}")
    checked = check_order(net, order)
    largest = largest_tile(together)
    chosen = tile or max(size for size in _tiles(batch, threads) if size <= largest)
    if chosen % lanes() or not 0 < chosen <= largest:
        raise InputError(
            f"tile={chosen}: the value must be a multiple of {lanes()}, at most {largest}"
        )
    compiled = CompiledNetwork(
        net, groups(net, checked, staged, together), batch, chosen, threads > 1
    )
    compiled.order = checked
    return compiled


def tuned(
    net: FFNN,
    batch: int = 128,
    *,
    threads: int = 1,
    repeats: int = REPEATS,
    past: int = NUMPY,
) -> CompiledNetwork:
    """Return the fastest of several compiled forms of ``net``, measured on this machine.

    A coordinate search varies one choice at a time: the tile and the number of neurons that are
    computed together, the block sizes of the order, and staging (:class:`LoopChoice`). The best
    few forms are then measured again. All forms compute the same sums; only the order of the terms
    differs. ``batch``: columns of the measured input. ``past``: the offset of inputs from a cache
    line in bytes, by default that of numpy's large arrays.
    """
    _check(batch, threads)
    x = aligned((len(net.inputs), batch), past)
    x[:] = np.random.RandomState(0).standard_normal(x.shape)
    search = _Search(net, x, threads, repeats)
    tile = max(size for size in _tiles(batch, threads) if size <= largest_tile())
    widest = search.widest
    best = LoopChoice(96 if widest > 96 else None, tile, True, 1, 1024 if widest > 1024 else None)
    for _ in range(PASSES):
        for axis in (search.shapes, search.rows, search.targets, search.staging):
            best = min([best, *axis(best)], key=search.seconds)
    return search.fastest()


class _Search:
    """The times of choices, each measured once; infinite for choices after the time limit."""

    def __init__(self, net: FFNN, x: Array, threads: int, repeats: int) -> None:
        self._net, self._x, self._threads, self._repeats = net, x, threads, repeats
        self._batch = x.shape[1]
        self._few = net.connections <= FEW * net.neurons
        self._times: dict[LoopChoice, float] = {}
        self._ends = time.perf_counter() + LIMIT_S
        self.widest = int(np.bincount(net.levels).max())

    def shapes(self, now: LoopChoice) -> list[LoopChoice]:
        """Return choices with other values of ``together`` and ``tile``.

        ``rows`` is scaled so that a block's values take the same number of bytes.
        """
        most = 1 if self._few else LARGEST
        possible = product(range(1, most + 1), _tiles(self._batch, self._threads)[:TILES])
        return [
            replace(now, together=n, tile=tile, rows=_scaled(now, tile))
            for n, tile in possible
            if tile <= largest_tile(n)
        ]

    def rows(self, now: LoopChoice) -> list[LoopChoice]:
        """Return choices with other values of ``rows`` (block sizes or greedy orders)."""
        rows = [n for n in ROWS if n is None or n < self.widest]
        return [replace(now, rows=n) for n in rows + [-m for m in MEMORIES if self._few]]

    def targets(self, now: LoopChoice) -> list[LoopChoice]:
        return [replace(now, targets=n) for n in TARGETS if n is None or n < self.widest]

    def staging(self, now: LoopChoice) -> list[LoopChoice]:
        return [replace(now, staged=staged) for staged in (False, True)]

    def seconds(self, choice: LoopChoice) -> float:
        if choice not in self._times:
            if self._times and time.perf_counter() > self._ends:
                return float("inf")
            run = self._compiled(choice)
            self._times[choice] = measure(lambda: run.columns(self._x), self._repeats)
        return self._times[choice]

    def fastest(self) -> CompiledNetwork:
        """Measure the best few choices again, in alternation, and return the fastest network."""
        ranked = sorted(self._times, key=self._times.__getitem__)[:FINALISTS]
        runs = [self._compiled(choice) for choice in ranked]
        rounds = [
            [measure(lambda run=run: run.columns(self._x), 1) for run in runs]
            for _ in range(2 * self._repeats)
        ]
        return runs[int(np.min(rounds, axis=0).argmin())]

    def _compiled(self, choice: LoopChoice) -> CompiledNetwork:
        order, plan = self._planned(choice)
        run = CompiledNetwork(self._net, plan, self._batch, choice.tile, self._threads > 1)
        run.order, run.choice = order, choice
        return run

    def _planned(self, choice: LoopChoice) -> tuple[Ints, Groups]:
        net, staged, together = self._net, choice.staged, choice.together
        if choice.rows is not None and choice.rows < 0:
            order = resident(net, -choice.rows)
            if order is not None:
                return order, groups(net, order, staged, together)
        blocking = blocked(net, choice.rows, choice.targets, together)
        block = None if choice.rows is None and choice.targets is None else blocking.block
        return blocking.order, groups(net, blocking.order, staged, together, block)


def _scaled(now: LoopChoice, tile: int) -> int | None:
    if now.rows is None or now.rows < 0:
        return now.rows
    return now.rows * now.tile // tile


def measure(run: Callable[..., object], repeats: int = REPEATS, least_s: float = 0.002) -> float:
    """Return the seconds of one call of ``run``, the minimum of ``repeats`` rounds.

    A round takes at least ``least_s`` seconds.
    """
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
        raise InputError(f"batch={batch}: the value must be 1 or more")
    if threads < 1:
        raise InputError(f"threads={threads}: the value must be 1 or more")


def _tiles(batch: int, threads: int) -> list[int]:
    width = lanes()
    share = -(-batch // threads)
    tiles = {width} | {width * n for n in (2, 4, LARGEST_TILE) if width * n < 2 * share}
    return sorted(tiles, reverse=True)[:3]
