"""Bytes of traffic that a capacity forces on every program of a network by rows.

*Proof.* Take a call that computes row y of a layer. Some rows were computed before it in every
order: those that it needs, and those that these need. Some calls run after it in every order: those
that need its row, and so on. A row of the first kind that the call itself or one of the second kind
reads is in one of both memories during the call, and fast memory has no more than its capacity.
What it does not hold is in slow memory: each of its bytes was written there, and is read there
later, at least once. Inputs and outputs do not count: their bytes are compulsory. The bound is that
of the call with the most such bytes. It holds for taller bands too, whose calls compute rows one
after the other, and for every choice of what lies in slow memory; not where rows are computed
again.
"""

from collections.abc import Iterator
from functools import cached_property

from tvm_serenity.rows.memories import viewed
from tvm_serenity.rows.network import Layer, Network

CALLS = 120
"""The most calls that are looked at: the middle and the last row of layers, evenly chosen."""


def forced_bytes(network: Network, capacity_bytes: int) -> int:
    """Return bytes beyond inputs and outputs that every program by rows moves.

    ``network`` has no copies: it is as it was before it was divided between both memories.
    """
    kept = _Kept(network)
    calls = [(at, y) for at, layer in enumerate(network.layers) for y in kept.chosen(layer)]
    step = max(1, -(-len(calls) // CALLS))
    most = max((kept.bytes_at(at, y) for at, y in calls[::step]), default=0)
    return 2 * max(0, most - capacity_bytes)


class _Kept:
    """Computes the rows in a memory at a call in every order; rows are bits of a number."""

    def __init__(self, network: Network) -> None:
        self.network = network
        root = viewed(network)
        ends = {root[f] for f in (*network.inputs, *network.outputs)}
        shown = {root[f] for f in range(len(root)) if root[f] != f}
        sums = {f for layer in network.layers if layer.sums for f in layer.outputs}
        self.counted = set(network.producer) - ends - shown - sums
        """Features whose rows count; neither views nor sums."""

    def chosen(self, layer: Layer) -> Iterator[int]:
        """Yield the rows of a layer whose calls are looked at."""
        if not layer.view and not layer.sums:
            height = self.network.rows(layer.outputs[0])
            yield from dict.fromkeys((height // 2, height - 1))

    def bytes_at(self, at: int, y: int) -> int:
        """Return the bytes of rows that are in a memory while row ``y`` of a layer is computed."""
        layers = self.network.layers
        wanted = dict.fromkeys(layers[at].outputs, 1 << y)
        for index in range(at, -1, -1):
            rows = 0
            for f in layers[index].outputs:
                rows |= wanted.get(f, 0)
            if rows:
                for f, seen in self.seen(index, rows):
                    wanted[f] = wanted.get(f, 0) | seen
        made = {f: rows for f, rows in wanted.items() if f not in layers[at].outputs}
        after, read = dict.fromkeys(layers[at].outputs, 1 << y), dict[int, int]()
        for f, seen in self.seen(at, 1 << y):
            read[f] = read.get(f, 0) | seen
        for index in range(at + 1, len(layers)):
            rows = self.following(index, after)
            if rows:
                for f in layers[index].outputs:
                    after[f] = after.get(f, 0) | rows
                seen_too = () if layers[index].sums else self.seen(index, rows)
                for f, seen in seen_too:  # a sum may have taken in its other rows before
                    read[f] = read.get(f, 0) | seen
        both = ((f, rows & read.get(f, 0)) for f, rows in made.items() if f in self.counted)
        return sum(self.network.features[f].row_bytes * rows.bit_count() for f, rows in both)

    def seen(self, index: int, rows: int) -> Iterator[tuple[int, int]]:
        """Yield the features that some rows of a layer need, with their rows."""
        layer = self.network.layers[index]
        for f, masks in zip(layer.inputs, self.masks[index], strict=True):
            if len(masks) == 1:
                yield f, masks[0]
                continue
            found, left = 0, rows
            while left:
                last = left.bit_length() - 1
                found |= masks[last]
                left ^= 1 << last
            yield f, found

    def following(self, index: int, after: dict[int, int]) -> int:
        """Return the rows of a layer that need a row in ``after``."""
        layer, found = self.network.layers[index], 0
        every = (1 << self.network.rows(layer.outputs[0])) - 1
        for f, masks in zip(layer.inputs, self.masks[index], strict=True):
            late = after.get(f, 0)
            if late and len(masks) == 1:
                return every
            if late:
                for y, mask in enumerate(masks):
                    found |= (1 << y) if mask & late else 0
        return found

    @cached_property
    def masks(self) -> list[list[list[int]]]:
        """For each layer and input the rows that a row of the result needs; one for all rows."""
        found = []
        for layer in self.network.layers:
            of_inputs = []
            for f, need in zip(layer.inputs, layer.needs, strict=True):
                if need is None or layer.view or layer.sums or not layer.splits:
                    of_inputs.append([(1 << self.network.rows(f)) - 1])
                else:
                    of_inputs.append([(1 << end) - (1 << first) for first, end in need])
            found.append(of_inputs)
        return found
