"""The method ``auto``: the best order of all methods, then annealing until the time limit."""

import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import numpy as np

from tvm_serenity.sparse.bounds import bounds
from tvm_serenity.sparse.check import is_topological
from tvm_serenity.sparse.network import FFNN
from tvm_serenity.sparse.orders.anneal import anneal
from tvm_serenity.sparse.orders.greedy import attempts, tune
from tvm_serenity.sparse.orders.result import (
    INTERRUPT,
    TIME,
    Ordered,
    OrderOptions,
    Progress,
    measured,
)
from tvm_serenity.sparse.orders.simple import layerwise, two_optimal
from tvm_serenity.sparse.orders.tiles import tiles

TUNED = 400_000
"""Without a time limit: total number of connections that the tuning of greedy weights orders."""
ROUNDS = 40
"""Without a time limit: largest number of orders that the tuning of greedy weights computes."""
MANY = 1_000_000
"""With a time limit: largest number of orders that the tuning of greedy weights computes."""
ANNEALED = 200_000_000
"""Without a time limit: approximate number of connections that annealing simulates."""
COOL = 1_000_000
"""Number of the first annealing iteration, as cool as the last iteration of the paper."""
WINDOW, BLOCKS = 6, 0.6
"""Longest window and share of block moves: short moves are cheap and suit an order that is good."""


class _Best:
    """The best order so far, reported to the progress callback."""

    def __init__(self, net: FFNN, settings: OrderOptions) -> None:
        self.least = bounds(net).total
        self.settings = settings
        self.begin = time.perf_counter()
        self.tried: dict[str, float | int | str] = {}
        self.left = settings.clock(net)
        self.found = measured(net, two_optimal(net), settings, "two-optimal")

    def look(self, ordered: Ordered) -> None:
        known = self.tried.get(ordered.method)
        if known is None or ordered.total < int(known):
            self.tried[ordered.method] = ordered.total
        if ordered.total < self.found.total:
            self.found = ordered
        if self.settings.progress is not None:
            self.settings.progress(
                Progress(ordered.method, len(self.tried), self.found.total, self.spent())
            )

    @property
    def unlimited(self) -> bool:
        """Whether there is no time limit."""
        return self.settings.time_limit_s is None

    def spent(self) -> float:
        return time.perf_counter() - self.begin

    def share(self, part: float) -> OrderOptions:
        """Return options that end at the fraction ``part`` of the time limit (at least 1 ms)."""
        limit = self.settings.time_limit_s
        if limit is None:
            return self.settings
        return self.settings.lasting(max(1e-3, limit * part - self.spent()))

    def late(self) -> bool:
        """Return whether the time left is too short to construct and simulate another order."""
        return self.left() < 0

    def done(self) -> bool:
        """Return whether the best order meets the lower bound or the time is used up."""
        return self.found.total == self.least or self.late()


def auto(net: FFNN, settings: OrderOptions) -> Ordered:
    """Return the best order of all methods, of tuned greedy weights, and of annealing.

    Annealing starts with the best order. It runs once; with a time limit, repeatedly until the
    limit. The search ends when an order meets Theorem 1's lower bound. Ctrl-C and the time limit
    end it with the best order so far. ``statistics`` has the I/Os of each method.
    """
    best = _Best(net, settings)
    limit = ""
    try:
        best.look(best.found)
        for ordered in () if best.done() else _candidates(net, best):
            best.look(ordered)
            limit = ordered.limit
            if best.done() or limit == INTERRUPT:
                break
    except KeyboardInterrupt:
        limit = INTERRUPT
    return replace(
        best.found,
        limit=limit if limit == INTERRUPT else TIME if best.late() else "",
        statistics={**best.found.statistics, **best.tried},
    )


def _candidates(net: FFNN, best: _Best) -> Iterator[Ordered]:
    settings = best.settings
    yield tiles(net, best.share(0.2))
    stored = np.arange(net.connections, dtype=np.int32)
    if is_topological(net, stored):
        yield measured(net, stored, settings, "given")
    yield measured(net, layerwise(net), settings, "layerwise")
    greedy_orders = attempts(net, best.share(0.6))
    yield from greedy_orders
    if greedy_orders:
        first = min(greedy_orders, key=lambda ordered: ordered.total)
        rounds = min(ROUNDS, TUNED // net.connections) if best.unlimited else MANY
        yield from tune(net, best.share(0.7), first, rounds)
    work = settings.annealing.iterations
    if settings.time_limit_s is None:
        work = min(work, max(100, ANNEALED // net.connections))
    for number in range(1) if best.unlimited or work == 0 else count():
        yield _annealed(net, best, work, number)


def _annealed(net: FFNN, best: _Best, iterations: int, number: int) -> Ordered:
    """Return the result of annealing round ``number``, which continues the previous round."""
    given = best.settings.annealing
    options = replace(
        given,
        iterations=iterations,
        window=given.window or min(WINDOW, given.window_of(net)),
        blocks=given.blocks or BLOCKS,
        first_iteration=COOL + number * iterations,
    )
    settings = replace(best.share(1.0), annealing=options, seed=best.settings.seed + number)
    return anneal(net, settings, best.found.order)
