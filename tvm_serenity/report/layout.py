"""A layered drawing of a network with few crossings and nearly straight edges.

The method is Sugiyama's. The layer of a node is its longest distance from a source. An edge over
several layers has a bend in each. Sweeps order each layer by the mean position of its neighbours,
and then place it: the positions nearest to these means that keep the distances (least squares by
pooling adjacent violators). Sweeps end at the deadline.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tvm_serenity.search.deadline import seconds_left

ORDER_SWEEPS = 8
PLACE_SWEEPS = 8
MAX_BENDS = 60_000
DRIFT_LAYERS = 12
_NODE, _BEND = 1.0, 0.4


@dataclass(frozen=True)
class Drawing:
    """The positions ``layer[i]`` and ``row[i]`` of node i; ``paths``: the points of each edge.

    ``rough``: the deadline ended the sweeps early.
    """

    layer: tuple[int, ...]
    row: tuple[float, ...]
    paths: tuple[tuple[tuple[int, float], ...], ...]
    rough: bool = False

    @property
    def layers(self) -> int:
        """The number of layers."""
        return max(self.layer, default=-1) + 1

    @property
    def rows(self) -> float:
        """The height in rows: the distance of two neighbours is 1."""
        return max(self.row, default=0.0) - min(self.row, default=0.0)


def layered(predecessors: Sequence[Sequence[int]]) -> Drawing:
    """Return the layout of nodes given in a topological order with their predecessors."""
    drawing = _Drawing(predecessors)
    drawing.order()
    return drawing.placed()


class _Drawing:
    """Nodes and bends by layer; the numbers of bends follow those of nodes."""

    def __init__(self, predecessors: Sequence[Sequence[int]]) -> None:
        self.count = len(predecessors)
        self.layer = _layers(predecessors)
        self.edges = [(p, i) for i, before in enumerate(predecessors) for p in before]
        bends = sum(self.layer[b] - self.layer[a] - 1 for a, b in self.edges)
        self.chains = [self._chain(a, b, bends <= MAX_BENDS) for a, b in self.edges]
        self.before: list[list[int]] = [[] for _ in self.layer]
        self.after: list[list[int]] = [[] for _ in self.layer]
        for chain in self.chains:
            for a, b in pairwise(chain):
                self.before[b].append(a)
                self.after[a].append(b)
        self.columns: list[list[int]] = [[] for _ in range(max(self.layer, default=-1) + 1)]
        for node in self._depth_first():
            self.columns[self.layer[node]].append(node)
        self.place = [0.0] * len(self.layer)
        self.rough = False
        self._number()

    def _chain(self, a: int, b: int, bent: bool) -> list[int]:
        chain = [a]
        for layer in range(self.layer[a] + 1, self.layer[b]) if bent else ():
            chain.append(len(self.layer))
            self.layer.append(layer)
        return [*chain, b]

    def _depth_first(self) -> list[int]:
        """Return all nodes and bends in depth-first order, which keeps branches together."""
        seen: set[int] = set()
        result = []
        for root in range(len(self.layer)):
            stack = [root] if not self.before[root] else []
            while stack:
                node = stack.pop()
                if node not in seen:
                    seen.add(node)
                    result.append(node)
                    stack.extend(reversed(self.after[node]))
        return result

    def _number(self) -> None:
        for column in self.columns:
            for position, node in enumerate(column):
                self.place[node] = float(position)

    def _sweeps(self, count: int) -> Iterator[int]:
        """Yield at most ``count`` sweeps, until the deadline."""
        for sweep in range(count):
            if seconds_left() == 0:
                self.rough = True
                return
            yield sweep

    def order(self) -> None:
        """Sort each layer by the mean position of its neighbours, forwards and backwards."""
        for sweep in self._sweeps(ORDER_SWEEPS):
            forth = sweep % 2 == 0
            neighbours = self.before if forth else self.after
            for column in self.columns if forth else reversed(self.columns):
                column.sort(key=lambda node: self._mean(neighbours[node], self.place[node]))
                for position, node in enumerate(column):
                    self.place[node] = float(position)

    def _mean(self, nodes: Sequence[int], default: float) -> float:
        return sum(self.place[n] for n in nodes) / len(nodes) if nodes else default

    def placed(self) -> Drawing:
        """Return the layout after moving the ordered nodes towards their neighbours."""
        for sweep in self._sweeps(PLACE_SWEEPS):
            forth = sweep % 2 == 0
            for column in self.columns if forth else reversed(self.columns):
                self._settle(column, forth, last=sweep >= PLACE_SWEEPS - 2)
        row = self._straightened()
        paths = tuple(tuple((self.layer[n], row[n]) for n in chain) for chain in self.chains)
        layer = tuple(self.layer[: self.count])
        return Drawing(layer, tuple(row[: self.count]), paths, self.rough)

    def _straightened(self) -> list[float]:
        """Return the positions without the vertical drift of the layers over the network."""
        middles = [(self.place[c[0]] + self.place[c[-1]]) / 2 for c in self.columns]
        row = list(self.place)
        for layer, column in enumerate(self.columns):
            near = middles[max(0, layer - DRIFT_LAYERS) : layer + DRIFT_LAYERS + 1]
            drift = sum(near) / len(near)
            for node in column:
                row[node] -= drift
        return row

    def _settle(self, column: Sequence[int], forth: bool, last: bool) -> None:
        def wish(node: int) -> float:
            near = self.before[node] if forth else self.after[node]
            if last:
                near = [*self.before[node], *self.after[node]]
            return self._mean(near, self.place[node])

        gaps = [0.0]
        for a, b in pairwise(column):
            widths = [_NODE if n < self.count else _BEND for n in (a, b)]
            gaps.append(gaps[-1] + sum(widths) / 2)
        for node, place in zip(column, spread([wish(n) for n in column], gaps), strict=True):
            self.place[node] = place


def spread(wishes: Sequence[float], gaps: Sequence[float]) -> list[float]:
    """Return the places nearest to ``wishes`` of which i and j are ``gaps[j] - gaps[i]`` apart."""
    blocks: list[tuple[float, int]] = []  # sum of wishes minus gaps, and their number
    for wish, gap in zip(wishes, gaps, strict=True):
        total, count = wish - gap, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / count:
            before, many = blocks.pop()
            total, count = total + before, count + many
        blocks.append((total, count))
    places = [total / count for total, count in blocks for _ in range(count)]
    return [place + gap for place, gap in zip(places, gaps, strict=True)]


def _layers(predecessors: Sequence[Sequence[int]]) -> list[int]:
    """Return the longest distance of each node from a source.

    A source is placed one layer before its first reader.
    """
    layer: list[int] = []
    for before in predecessors:
        layer.append(max((layer[p] + 1 for p in before), default=0))
    first_reader = [-1] * len(layer)
    for node, before in enumerate(predecessors):
        for p in before:
            if first_reader[p] < 0 or layer[node] < first_reader[p]:
                first_reader[p] = layer[node]
    for node, before in enumerate(predecessors):
        if not before and first_reader[node] > 0:
            layer[node] = first_reader[node] - 1
    return layer
