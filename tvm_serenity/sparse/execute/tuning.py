"""Networks compiled for an order, or for the order, blocks and tiles measured to be fastest."""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tvm_serenity.errors import InputError
from tvm_serenity.sparse.check import check_order
from tvm_serenity.sparse.execute.blocks import blocked
from tvm_serenity.sparse.execute.compiled import Choice, Compiled
from tvm_serenity.sparse.execute.kernel import LARGEST_TILE, lanes, largest_tile
from tvm_serenity.sparse.execute.plan import Groups, groups
from tvm_serenity.sparse.execute.steps import LOOPS
from tvm_serenity.sparse.network import FFNN, Ints
from tvm_serenity.sparse.orders.greedy import resident

ROWS = (None, 32, 48, 64, 96, 128, 192, 256, 512)
"""Sources of a block that are tried."""
TARGETS = (None, 512, 1024, 2048)
"""Targets of a part of a level that are tried: their sums stay in the second cache."""
FEW = 8
"""Connections a neuron up to which greedy orders are tried: sums are then seldom split."""
MEMORIES = (64, 96, 192)
"""Values of fast memory for those: what the first cache holds of the batch."""
REPEATS = 5
PASSES = 2
"""Over what there is to choose."""


def compile(
    net: FFNN,
    order: ArrayLike | None = None,
    batch: int = 128,
    *,
    tile: int | None = None,
    staged: bool = False,
    together: int = 1,
    threads: int = 1,
) -> Compiled:
    """Return ``net`` compiled to compute its connections in ``order`` for ``batch`` at a time.

    ``order=None`` is :func:`tuned`. ``tile``: columns at a time (default: as many as fit in
    registers). ``staged``: inputs are copied to aligned tiles, not long before they are used.
    ``together`` (1 to 3): so many targets that follow each other in the order, on one level, are
    computed at once: their connections mix, and a source they share is loaded once. ``threads``
    above 1 splits the batch over TVM's threads. Raises :class:`InputError` for an order that is not
    topological or a batch, tile or number that is not possible.
    """
    _check(batch, threads)
    if order is None:
        return tuned(net, batch, threads=threads)
    if together not in LOOPS:
        raise InputError(f"{together} neurons together: 1 to {max(LOOPS)}")
    checked = check_order(net, order)
    largest = largest_tile(together)
    chosen = tile or max(size for size in _tiles(batch, threads) if size <= largest)
    if chosen % lanes() or not 0 < chosen <= largest:
        raise InputError(f"tile {chosen}: a multiple of {lanes()}, at most {largest}")
    made = Compiled(net, groups(net, checked, staged, together), batch, chosen, threads > 1)
    made.order = checked
    return made


def tuned(net: FFNN, batch: int = 128, *, threads: int = 1, repeats: int = REPEATS) -> Compiled:
    """Return the fastest of some blocked orders and tiles, measured here and now.

    Of rows, staging, neurons together, parts and tile, one is chosen after the other, the others as
    they were best so far. The result computes the same whatever the timing says, up to the order of
    its sums.
    """
    _check(batch, threads)
    search = _Search(net, batch, threads, repeats)
    tile = max(size for size in _tiles(batch, threads) if size <= largest_tile())
    best = Choice(None, tile, True)
    for _ in range(PASSES):
        for field, values in search.axes():
            tried = [replace(best, **{field: value}) for value in values]
            possible = [c for c in tried if c.tile <= largest_tile(c.together)]
            best = min(possible, key=search.seconds)
    return search.made(best)


class _Search:
    """Plans and times of choices, each made once."""

    def __init__(self, net: FFNN, batch: int, threads: int, repeats: int) -> None:
        self._net, self._batch, self._threads, self._repeats = net, batch, threads, repeats
        self._plans: dict[Choice, tuple[Ints, Groups]] = {}
        self._times: dict[Choice, float] = {}
        shape = (len(net.inputs), batch)
        self._x = np.random.RandomState(0).standard_normal(shape).astype(np.float32)

    def axes(self) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """Yield what there is to choose, and from what."""
        widest = int(np.bincount(self._net.levels).max())
        rows = tuple(n for n in ROWS if n is None or n < widest)
        if self._net.connections <= FEW * self._net.neurons:
            rows += tuple(-n for n in MEMORIES)
        yield "rows", rows
        yield "staged", (True, False)
        yield "together", tuple(LOOPS)
        yield "targets", tuple(n for n in TARGETS if n is None or n < widest)
        yield "tile", tuple(_tiles(self._batch, self._threads))

    def seconds(self, choice: Choice) -> float:
        if choice not in self._times:
            run = self.made(choice)
            self._times[choice] = measure(lambda: run.columns(self._x), self._repeats)
        return self._times[choice]

    def made(self, choice: Choice) -> Compiled:
        order, plan = self._plan(replace(choice, tile=0))
        run = Compiled(self._net, plan, self._batch, choice.tile, self._threads > 1)
        run.order, run.choice = order, choice
        return run

    def _plan(self, choice: Choice) -> tuple[Ints, Groups]:
        if choice not in self._plans:
            self._plans[choice] = self._planned(choice)
        return self._plans[choice]

    def _planned(self, choice: Choice) -> tuple[Ints, Groups]:
        net, staged, together = self._net, choice.staged, choice.together
        if choice.rows is not None and choice.rows < 0:
            order = resident(net, -choice.rows)
            if order is not None:
                return order, groups(net, order, staged, together)
        made = blocked(net, choice.rows, choice.targets, together)
        return made.order, groups(net, made.order, staged, together, made.block)


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
