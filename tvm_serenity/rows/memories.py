"""A network by rows over two memories: what lies in slow memory, and the copies to and from it.

A feature in slow memory lies there complete. A layer reads and writes its rows there directly, or
in fast memory: then a layer that copies fetches the rows that it reads, or stores those that it
writes. Copies are layers by rows like all others, so the order search runs them where they take
little memory, and fetched rows live in fast memory as long as a window needs them. Inputs and
outputs are in slow memory. Each other feature is in fast memory, or in slow memory and, for
the layers that read it early, also in fast memory: a long skip is stored, and fetched again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from tvm_serenity.rows.network import Layer, Network

COPY = "COPY"
"""The kind of layers that copy rows between the memories."""

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
