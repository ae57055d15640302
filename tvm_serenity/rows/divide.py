"""Which features of a network by rows lie in slow memory: a greedy choice, then a local search.

The order of calls is that of the segment program, and the excess of a choice are the bytes beyond
the capacity of fast memory, of all calls together.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import islice
from math import inf

import numpy as np
from numpy.typing import NDArray

from tvm_serenity.memory import profile
from tvm_serenity.rows.memories import Divided, Division, Passes, divided, viewed
from tvm_serenity.rows.network import Network, hull
from tvm_serenity.rows.segments import segment_order
from tvm_serenity.rows.split import Banded, heights_of, split
from tvm_serenity.search.deadline import seconds_left

MOST_CANDIDATES = 6
"""Features at the peak that are considered for slow memory: those with the most bytes there, and as
many that are the smallest in all, after which less may be live."""
AT_ONCE = 4
"""Moves that are tried together: those of the least price by what is live now."""
LOCAL_CALLS = 20_000
"""Calls in all orders that the local search tries: some hundred orders of a small network, a few of
a large one."""


def divide(
    network: Network,
    rows: int,
    capacity_bytes: int,
    passes: Passes,
    most_bytes: float = inf,
) -> Divided:
    """Return ``network`` in two memories, by bands of ``rows`` rows and with little in slow memory.

    Features are moved to slow memory one after the other until the peak of fast memory is
    ``capacity_bytes`` at most, or no feature helps. Each time, of the largest features at the peak
    the one with the fewest bytes of traffic for what it takes away of the excess. Those that are
    not needed move back. Then a local search takes one feature out, or puts one in, and begins
    again from there. The search ends early at more than ``most_bytes`` in slow memory.
    """
    return DivisionSearch(network, rows, capacity_bytes, passes).best(most_bytes).divided


@dataclass(frozen=True)
class Tried:
    """A division with its excess, and the features that are live at the peak, the largest first.

    ``over``: bytes beyond the capacity at each step, negative where there is room. ``banded`` and
    ``order``: its calls and their order.
    """

    how: Division
    divided: Divided
    banded: Banded
    order: tuple[int, ...]
    over: NDArray[np.int64]
    live: tuple[int, ...]

    @property
    def excess_bytes(self) -> int:
        """The bytes beyond the capacity, of all calls together."""
        return int(np.maximum(self.over, 0).sum())

    @property
    def price(self) -> tuple[int, int]:
        """What decides: whether it fits, and the bytes in slow memory."""
        return self.excess_bytes, self.divided.total_bytes


class DivisionSearch:
    """The search of :func:`divide`."""

    def __init__(self, network: Network, rows: int, capacity: int, passes: Passes) -> None:
        self.network, self.rows, self.capacity, self.passes = network, rows, capacity, passes
        self.root = viewed(network)
        self.calls = 0
        """The calls in all orders that were tried."""

    def best(self, most_bytes: float) -> Tried:
        """Return the division; the search ends early at more than ``most_bytes``."""
        first = self.tried(Division())
        best = self.given_back(self.reduced(first, frozenset(), most_bytes))
        if best.excess_bytes or best.divided.total_bytes > most_bytes:
            return best
        least, last = first.divided.total_bytes, self.calls + LOCAL_CALLS
        better: Tried | None = best
        while better is not None:
            best, better = better, None
            if best.divided.total_bytes > least:
                near = self.neighbours(best, last)
                better = next((one for one in near if one.price < best.price), None)
        return best

    def reduced(self, best: Tried, kept: Set[int], most_bytes: float) -> Tried:
        """Return a division with more in slow memory, until it fits; ``kept`` stay in fast memory.

        It ends early at more than ``most_bytes``.
        """
        while best.excess_bytes and best.divided.total_bytes <= most_bytes and seconds_left():
            better = self.next_moves(best, kept)
            if not better:
                break
            best = min(better, key=lambda one: _price(best, one.excess_bytes, one.divided))
        return best

    def next_moves(self, best: Tried, kept: Set[int]) -> list[Tried]:
        """Return divisions with less excess: those that seem best, of the first kind that has any.

        Reading and writing in place, several times, is tried where nothing else helps.
        """
        for moves in (self.moves(best, kept), self.in_place(best, kept)):
            ranked = iter(moves)
            while batch := list(islice(ranked, AT_ONCE)):
                found = [self.tried(how) for how in batch]
                found = [one for one in found if one.excess_bytes < best.excess_bytes]
                if found:
                    return found
        return []

    def given_back(self, best: Tried) -> Tried:
        """Return a division in which no single feature, and no access in place, is unneeded."""
        for how in self.less(best.how):
            if seconds_left() == 0:
                break
            again = _intersection(best.how, how)
            without = self.tried(again) if again != best.how else best
            if without.price <= best.price:
                best = without
        return best

    def less(self, how: Division) -> Iterator[Division]:
        """Yield a division without one feature in slow memory, or without one access in place."""
        for feature in how.slow:
            yield _without(how, feature)
        for pair in sorted(how.direct):
            yield replace(how, direct=how.direct - {pair})

    def neighbours(self, best: Tried, last_call: int) -> Iterator[Tried]:
        """Yield divisions near one that fits, until ``last_call`` calls were tried in all.

        A feature is read early by other layers; or it stays in fast memory, and others are moved
        instead; or one more is moved, and others move back.
        """
        for more in (self.changed(best), self.exchanged(best), self.added(best)):
            for one in more:
                yield one
                if self.calls >= last_call or seconds_left() == 0:
                    return

    def changed(self, best: Tried) -> Iterator[Tried]:
        """Yield divisions in which other layers read a feature before it is dropped."""
        for feature, now in best.how.slow.items():
            for early in self.early(feature):
                if early != now:
                    slow = {**best.how.slow, feature: early}
                    yield self.given_back(self.tried(replace(best.how, slow=slow)))

    def exchanged(self, best: Tried) -> Iterator[Tried]:
        """Yield divisions with a feature back in fast memory, and others moved instead."""
        for feature in best.how.slow:
            without = self.tried(_without(best.how, feature))
            most = best.divided.total_bytes
            yield self.given_back(self.reduced(without, frozenset({feature}), most))

    def added(self, best: Tried) -> Iterator[Tried]:
        """Yield divisions with one more feature in slow memory, and others moved back."""
        for feature in self.network.producer:
            if feature not in best.how.slow and self.network.readers[feature]:
                for early in self.early(feature):
                    slow = {**best.how.slow, feature: early}
                    yield self.given_back(self.tried(replace(best.how, slow=slow)))

    def moves(self, best: Tried, kept: Set[int]) -> list[Division]:
        """Return divisions with one more feature in slow memory, the least price first.

        The price is by what is live now: copies that it needs are not counted.
        """
        found = []
        for feature in self.candidates(best, kept):
            if feature not in best.how.slow and feature in self.network.producer:
                for early in self.early(feature):
                    how = replace(best.how, slow={**best.how.slow, feature: early})
                    over = best.over - self.held(best, feature, early)
                    made = divided(self.network, how, self.passes)
                    excess = int(np.maximum(over, 0).sum())
                    found.append((_price(best, min(excess, best.excess_bytes - 1), made), how))
        return [how for _, how in sorted(found, key=lambda one: one[0])]

    def held(self, best: Tried, feature: int, early: Set[int]) -> NDArray[np.int64]:
        """Return at each step the bytes that a feature holds for others than its ``early`` readers.

        It is for a feature of which no layer reads a copy yet. The rows under the window of each
        layer that will read a copy count against it, from its first to its last call.
        """
        graph, made = best.banded.graph, best.divided
        step = {op: at for at, op in enumerate(best.order)}
        readers: dict[int, list[int]] = {}
        for tensor, band in enumerate(best.banded.bands):
            known = made.network.features[band.feature]
            if self.root[made.shows[band.feature]] == feature and not known.slow:
                readers.setdefault(graph.storage[tensor], []).extend(graph.consumers[tensor])
        change, spans = np.zeros(len(step) + 1, np.int64), dict[int, tuple[int, int]]()
        late = set(self.network.readers[feature]) - early
        copied = {layer for layer in late if self.passes.get((layer, feature), 1) > 1}
        for op in {op for ops in readers.values() for op in ops}:
            layer, at = made.came_from[best.banded.calls[op].layer], step[op]
            if layer is not None and layer in copied:
                first, last = spans.get(layer, (at, at))
                spans[layer] = min(first, at), max(last, at)
        for layer, (first, last) in spans.items():
            size = self.window_bytes(layer, feature)
            change[first] -= size
            change[last + 1] += size
        for storage, ops in readers.items():
            start = step.get(graph.producer[storage], 0)
            near = [op for op in ops if made.came_from[best.banded.calls[op].layer] in early]
            kept = max((step[op] for op in near), default=start) + 1
            stop = max((step[op] for op in ops), default=start) + 1
            change[kept] += graph.tensors[storage].size_bytes
            change[stop] -= graph.tensors[storage].size_bytes
        return np.cumsum(change)[:-1]

    def window_bytes(self, layer: int, feature: int) -> int:
        """Return the bytes of a feature that a layer needs for a band of its result, at most."""
        known, one = self.network.layers[layer], self.network.features[feature]
        need = known.needs[known.inputs.index(feature)]
        if need is None:
            return one.size_bytes
        return one.row_bytes * max(
            end - first
            for first, end in (
                hull(need, y, min(y + self.rows, len(need))) for y in range(0, len(need), self.rows)
            )
        )

    def in_place(self, best: Tried, kept: Set[int]) -> Iterator[Division]:
        """Yield divisions in which a layer goes several times over slow memory, without a copy."""
        for feature in self.candidates(best, kept):
            layers = (*self.network.readers[feature], *self.makers(feature))
            for pair in ((layer, feature) for layer in layers):
                if self.passes.get(pair, 1) > 1 and pair not in best.how.direct:
                    yield replace(best.how, direct=best.how.direct | {pair})

    def candidates(self, best: Tried, kept: Set[int]) -> list[int]:
        """Return the features to try."""
        small = sorted(best.live, key=lambda f: (self.network.features[f].size_bytes, f))
        found = dict.fromkeys((*best.live[:MOST_CANDIDATES], *small[:MOST_CANDIDATES]))
        return [f for f in found if f not in kept]

    def early(self, feature: int) -> list[frozenset[int]]:
        """Return the sets of layers that may read a feature before it is dropped."""
        viewed_too = [f for f, root in enumerate(self.root) if root == feature]
        if len(viewed_too) > 1 or self.root[feature] != feature:
            return [frozenset()]
        readers: Sequence[int] = self.network.readers[feature]
        return [frozenset(readers[:count]) for count in range(len(readers))]

    def makers(self, feature: int) -> Iterable[int]:
        """Return the layer that makes a feature, none for an input."""
        return [self.network.producer[f] for f in [feature] if f in self.network.producer]

    def tried(self, how: Division) -> Tried:
        """Return a division with the excess of the order by segments."""
        made = divided(self.network, how, self.passes)
        banded = split(made.network, heights_of(made.network, self.rows))
        order = segment_order(banded, self.capacity)
        self.calls += len(order)
        found = profile(banded.graph, order)
        held: dict[int, int] = {}
        for one in found.peak_ranges:
            if one.tensors:
                feature = made.shows[banded.bands[one.tensors[0]].feature]
                held[feature] = held.get(feature, 0) + one.size_bytes
        live = sorted(held, key=lambda f: (-held[f], f))
        over = np.array([step.live_bytes for step in found.steps], np.int64) - self.capacity
        return Tried(how, made, banded, order, over, tuple(live))


def _price(before: Tried, excess: int, made: Divided) -> tuple[bool, float]:
    """Return what a move costs: the bytes where it fits, else for each byte of the excess."""
    more, less = made.total_bytes - before.divided.total_bytes, before.excess_bytes - excess
    return excess > 0, more / less if excess else more


def _without(how: Division, feature: int) -> Division:
    """Return a division without a feature in slow memory, and without accesses to it in place."""
    slow: Mapping[int, frozenset[int]] = {f: e for f, e in how.slow.items() if f != feature}
    return Division(slow, frozenset(pair for pair in how.direct if pair[1] != feature))


def _intersection(one: Division, two: Division) -> Division:
    """Return what both divisions have in slow memory."""
    slow = {f: early for f, early in one.slow.items() if f in two.slow}
    return Division(slow, one.direct & two.direct)
