"""A network by rows over two memories: what lies in slow memory, and the copies to and from it.

A feature in slow memory lies there complete. A layer reads and writes its rows there directly, or
in fast memory: then a layer that copies fetches the rows that it reads, or stores those that it
writes. Copies are layers by rows like all others, so the order search runs them where they take
little memory, and fetched rows live in fast memory as long as a window needs them. Inputs and
outputs are in slow memory. Each other feature is in fast memory, or in slow memory and, for
the layers that read it early, also in fast memory: a long skip is stored, and fetched again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from tvm_serenity.memory import profile
from tvm_serenity.rows.network import Layer, Network
from tvm_serenity.rows.segments import segment_order
from tvm_serenity.rows.split import heights_of, split
from tvm_serenity.search.deadline import seconds_left

COPY = "COPY"
"""The kind of layers that copy rows between the memories."""
MOST_CANDIDATES = 6
"""Features at the peak that are tried in slow memory: those with the most bytes there, and as many
that are the smallest in all, after which less may be live."""

Passes = Mapping[tuple[int, int], int]
"""How often a layer goes over the bytes of a feature, by both; 1 if it is missing."""


@dataclass(frozen=True)
class Division:
    """The division of features between fast and slow memory; inputs and outputs are in slow memory.

    ``slow``: the features in slow memory, each with the layers that read a copy of it in fast
    memory. ``direct``: pairs of a layer and a feature in slow memory that the layer accesses there,
    even if it reads the bytes several times.
    """

    slow: Mapping[int, frozenset[int]] = field(default_factory=dict)
    direct: frozenset[tuple[int, int]] = frozenset()


@dataclass(frozen=True)
class Divided:
    """A network in two memories; ``came_from``: the layer of each layer, None of those that copy.

    ``shows``: for each feature, the feature whose rows it has. ``passes``: how often the layers
    go over features in slow memory.
    """

    network: Network
    came_from: tuple[int | None, ...]
    shows: tuple[int, ...]
    passes: Passes

    @property
    def total_bytes(self) -> int:
        """Bytes read from and written to slow memory."""
        return sum(self._copied()) + sum(self._direct())

    def reads(self, layer: int, feature: int) -> int:
        """Return how often a layer that reads a feature in slow memory reads each row.

        It is for each row of the layer's result that needs the row, and for a layer that does not
        run by rows in all.
        """
        known, one = self.network.layers[layer], self.network.features[feature]
        count = self.passes.get((layer, feature), 1) * one.height
        need = known.needs[known.inputs.index(feature)]
        height = self.network.rows(known.outputs[0])
        if need is None:
            seen = one.height * (height if known.splits else 1)
        else:
            seen = sum(end - first for first, end in need)
        return max(1, -(-count // max(seen, 1)))

    def needed(self, layer: int, feature: int, first: int, end: int) -> dict[int, int]:
        """Return how often rows ``first`` to ``end - 1`` of a layer's result read a feature.

        For a layer that sums up rows, they are rows of the feature.
        """
        known, found = self.network.layers[layer], dict[int, int]()
        need = known.needs[known.inputs.index(feature)]
        every = (0, self.network.rows(feature))
        calls = range(first, end) if known.splits else range(1)
        for y in calls:
            rows = (y, y + 1) if known.sums else every if need is None else need[y]
            for row in range(*rows):
                found[row] = found.get(row, 0) + 1
        times = 1 if known.sums else self.reads(layer, feature)
        return {row: count * times for row, count in found.items()}

    def writes(self, layer: int, feature: int) -> int:
        """Return how often a layer that makes a feature in slow memory writes each row."""
        return self.passes.get((layer, feature), 1)

    def _copied(self) -> Iterator[int]:
        features = self.network.features
        for layer in self.network.layers:
            if layer.copies:
                yield features[layer.outputs[0]].size_bytes

    def _direct(self) -> Iterator[int]:
        """Yield the bytes of each feature in slow memory that a layer accesses there."""
        features = self.network.features
        for index, layer in enumerate(self.network.layers):
            if layer.copies or layer.view:
                continue
            for f in dict.fromkeys(f for f in layer.inputs if features[f].slow):
                height = self.network.rows(f if layer.sums else layer.outputs[0])
                counts = self.needed(index, f, 0, height).values()
                yield features[f].row_bytes * sum(counts)
            for f in (f for f in layer.outputs if features[f].slow):
                yield features[f].size_bytes * self.writes(index, f)


def divided(network: Network, how: Division, passes: Passes) -> Divided:
    """Return ``network`` with features in slow memory, and with the layers that copy.

    Inputs and outputs are in slow memory, and what is a view of a feature there. A layer that goes
    over a feature once accesses it in place. ``passes`` is by the layers of ``network``.
    """
    return _Divider(network, how, passes).divided()


def viewed(network: Network) -> list[int]:
    """Return for each feature the feature that it is a view of, itself for all others."""
    root = list(range(len(network.features)))
    for layer in network.layers:
        if layer.view:
            for f in layer.outputs:
                root[f] = root[layer.inputs[0]]
    return root


class _Divider:
    """Builds the network in two memories layer by layer."""

    def __init__(self, network: Network, how: Division, passes: Passes) -> None:
        self.network, self.how, self.passes = network, how, passes
        self.features = list(network.features)
        self.shows = list(range(len(network.features)))
        self.layers: list[Layer] = []
        self.came_from: list[int | None] = []
        self.found: dict[tuple[int, int], int] = {}
        self.made: dict[int, int] = {}
        """The rows in fast memory, as they are made, of features that are stored."""
        root = viewed(network)
        roots = {root[f] for f in (*network.inputs, *network.outputs, *how.slow)}
        self.slow = {f for f in range(len(network.features)) if root[f] in roots}
        for f in self.slow:
            self.features[f] = replace(self.features[f], slow=True)

    def divided(self) -> Divided:
        """Return the network in two memories."""
        for index, layer in enumerate(self.network.layers):
            if layer.view:
                self.add(layer, index)
            else:
                self.layer(index, layer)
        network = replace(self.network, features=tuple(self.features), layers=tuple(self.layers))
        return Divided(network, tuple(self.came_from), tuple(self.shows), self.found)

    def layer(self, index: int, layer: Layer) -> None:
        """Add a layer that computes, after the copies that it reads and before those it makes."""
        near: dict[int, int] = {}
        for f in dict.fromkeys(layer.inputs):
            if f not in self.slow:
                continue
            if index in self.how.slow.get(f, ()):
                near[f] = self.made[f]
            elif self.is_copied(index, f):
                near[f] = self.in_fast(f, f"for_{layer.name}")
                self.copy(f, near[f], "fetched")
        stored = [f for f in layer.outputs if f in self.slow]
        stored = [f for f in stored if self.how.slow.get(f) or self.is_copied(index, f)]
        for f in stored:
            near[f] = self.made[f] = self.in_fast(f, "made")
        for f in (*layer.inputs, *layer.outputs):
            if f in self.slow and f not in near:
                self.found[len(self.layers), f] = self.passes.get((index, f), 1)
        inputs, outputs = ([near.get(f, f) for f in fs] for fs in (layer.inputs, layer.outputs))
        self.add(replace(layer, inputs=tuple(inputs), outputs=tuple(outputs)), index)
        for f in stored:
            self.copy(self.made[f], f, "stored")

    def is_copied(self, index: int, feature: int) -> bool:
        """Return whether a layer accesses a copy in fast memory, not the feature in slow memory."""
        several = self.passes.get((index, feature), 1) > 1
        return several and (index, feature) not in self.how.direct

    def add(self, layer: Layer, origin: int | None) -> None:
        """Add a layer; ``origin``: its number in the network, None for one that copies."""
        self.layers.append(layer)
        self.came_from.append(origin)

    def in_fast(self, feature: int, what: str) -> int:
        """Return a new feature in fast memory with the rows of another one."""
        known = self.network.features[feature]
        self.features.append(replace(known, name=f"{known.name}_{what}"))
        self.shows.append(feature)
        return len(self.features) - 1

    def copy(self, source: int, target: int, what: str) -> None:
        """Add the layer that copies the rows of a feature to another."""
        known = self.features[target]
        needs = (tuple((y, y + 1) for y in range(known.height)),)
        name = f"{self.network.features[self.shows[target]].name}_{what}"
        self.add(Layer(name, COPY, (source,), (target,), needs, copies=True), None)


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
    the one with the fewest bytes of traffic for what it takes away of the excess: the bytes beyond
    the capacity, of all calls together. In the end those that are not needed move back. The search
    ends early at more than ``most_bytes`` in slow memory.
    """
    return _Search(network, rows, capacity_bytes, passes).best(most_bytes).divided


@dataclass(frozen=True)
class _Tried:
    """A division with its excess, and the features that are live at the peak, the largest first."""

    how: Division
    divided: Divided
    excess_bytes: int
    live: tuple[int, ...]


class _Search:
    """The search of :func:`divide`."""

    def __init__(self, network: Network, rows: int, capacity: int, passes: Passes) -> None:
        self.network, self.rows, self.capacity, self.passes = network, rows, capacity, passes
        self.root = viewed(network)

    def best(self, most_bytes: float) -> _Tried:
        """Return the division; the search ends early at more than ``most_bytes``."""
        best = self.tried(Division())
        while best.excess_bytes and best.divided.total_bytes <= most_bytes:
            better: list[_Tried] = []
            for moves in (self.moves, self.in_place):
                better = better or [m for m in moves(best) if m.excess_bytes < best.excess_bytes]
            if not better or seconds_left() == 0:
                break
            best = min(better, key=lambda one: self.price(one, best))
        for feature in tuple(best.how.slow) if seconds_left() else ():
            less = {f: early for f, early in best.how.slow.items() if f != feature}
            without = self.tried(replace(best.how, slow=less))
            if without.excess_bytes <= best.excess_bytes:
                best = min(best, without, key=lambda one: one.divided.total_bytes)
        return best

    def price(self, one: _Tried, before: _Tried) -> tuple[bool, float]:
        """Return what a move costs: the bytes where it fits, else for each byte of the excess."""
        more = one.divided.total_bytes - before.divided.total_bytes
        less = before.excess_bytes - one.excess_bytes
        return one.excess_bytes > 0, more / less if one.excess_bytes else more

    def moves(self, best: _Tried) -> Iterator[_Tried]:
        """Yield divisions with one more feature in slow memory."""
        for feature in self.candidates(best):
            readers = self.network.readers[feature]
            if feature not in best.how.slow and feature in self.network.producer:
                for early in self.early(feature, readers):
                    slow = {**best.how.slow, feature: frozenset(early)}
                    yield self.tried(replace(best.how, slow=slow))

    def in_place(self, best: _Tried) -> Iterator[_Tried]:
        """Yield divisions in which a layer goes several times over slow memory, without a copy."""
        for feature in self.candidates(best):
            layers = (*self.network.readers[feature], *self.makers(feature))
            for pair in ((layer, feature) for layer in layers):
                if self.passes.get(pair, 1) > 1 and pair not in best.how.direct:
                    yield self.tried(replace(best.how, direct=best.how.direct | {pair}))

    def candidates(self, best: _Tried) -> list[int]:
        """Return the features to try."""
        small = sorted(best.live, key=lambda f: (self.network.features[f].size_bytes, f))
        return list(dict.fromkeys((*best.live[:MOST_CANDIDATES], *small[:MOST_CANDIDATES])))

    def early(self, feature: int, readers: Sequence[int]) -> list[Sequence[int]]:
        """Return the sets of layers that may read a feature before it is dropped."""
        viewed_too = [f for f, root in enumerate(self.root) if root == feature]
        if len(viewed_too) > 1 or self.root[feature] != feature:
            return [()]
        return [readers[:count] for count in range(len(readers))]

    def makers(self, feature: int) -> tuple[int, ...]:
        """Return the layer that makes a feature, none for an input."""
        return tuple(self.network.producer[f] for f in [feature] if f in self.network.producer)

    def tried(self, how: Division) -> _Tried:
        """Return a division with the excess of the order by segments."""
        made = divided(self.network, how, self.passes)
        banded = split(made.network, heights_of(made.network, self.rows))
        order = segment_order(banded, self.capacity)
        found = profile(banded.graph, order)
        held: dict[int, int] = {}
        for one in found.peak_ranges:
            if one.tensors:
                feature = made.shows[banded.bands[one.tensors[0]].feature]
                held[feature] = held.get(feature, 0) + one.size_bytes
        live = sorted(held, key=lambda f: (-held[f], f))
        excess = sum(max(step.live_bytes - self.capacity, 0) for step in found.steps)
        return _Tried(how, made, excess, tuple(live))
