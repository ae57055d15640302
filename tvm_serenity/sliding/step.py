"""Orders and places one step of incremental inference, as a graph of rows.

The retained rows of a feature form one block that persists from step to step. At the start of a
step, its rows move up. A feature with several phases has one more block per additional phase; each
step uses the block of its phase. A computed row that will be retained is written to the block;
other rows are live within the step only. The peak of the graph includes both, because blocks are
inputs and outputs of the graph and so live throughout.
"""

import time
from dataclasses import dataclass, field

from tvm_serenity.graph import Graph, Op, Tensor
from tvm_serenity.memory import live_ranges
from tvm_serenity.plan import plan
from tvm_serenity.rows.limits import Limits
from tvm_serenity.rows.network import Layer
from tvm_serenity.rows.place import buffers_of
from tvm_serenity.rows.split import SOURCE, Band, Banded, RowCall
from tvm_serenity.rows.stream import Streaming
from tvm_serenity.schedule import schedule
from tvm_serenity.search.outcome import Outcome
from tvm_serenity.sliding.steady import Steady


@dataclass(frozen=True)
class SlidingStep:
    """An ordered and placed step; ``streaming`` holds its graph, order and placement.

    ``blocks``: maps a feature to the tensor of its retained rows. ``stores``: maps a feature to the
    tensors of its rows for other phases. ``shown``: maps the output of a view to its source; for
    the view that gives the input its rows, maps the input to the view's output.
    """

    steady: Steady
    streaming: Streaming
    blocks: dict[int, int]
    stores: dict[int, tuple[int, ...]]
    shown: dict[int, int]

    @property
    def arena_bytes(self) -> int:
        """The size of the arena in bytes, retained rows included."""
        return self.streaming.arena_bytes


def sliding_step(steady: Steady, limits: Limits | None = None) -> SlidingStep:
    """Order the step for the least peak, place it, and return the result."""
    limits, started = limits or Limits(), time.perf_counter()
    build = _Build(steady)
    banded = build.banded()
    ordered = schedule(banded.graph, "auto", limits.order)
    ranges = live_ranges(banded.graph, ordered.order)
    placed = plan(buffers_of(banded, ranges), options=limits.place)
    optimal = placed.arena_bytes == ordered.lower_bound_bytes
    streaming = Streaming(
        banded=banded,
        schedule=ordered,
        ranges=ranges,
        plan=placed,
        outcome=Outcome.OPTIMAL if optimal else Outcome.FEASIBLE,
        start_bytes=ordered.peak_bytes,
        seconds=time.perf_counter() - started,
    )
    return SlidingStep(steady, streaming, build.blocks, build.stores, build.shown)


def least_bytes(steady: Steady) -> int:
    """Return a lower bound on the arena of a step in bytes: all blocks and the largest op."""
    graph = _Build(steady).banded().graph
    size = [t.size_bytes for t in graph.tensors]
    blocks = frozenset(graph.inputs)
    largest_op = 0
    for op in graph.ops:
        touched = {*op.inputs, *op.outputs} - blocks - {op.view_of}
        largest_op = max(largest_op, sum(size[t] for t in touched) + op.workspace_bytes)
    return sum(size[t] for t in blocks) + largest_op


@dataclass
class _Build:
    steady: Steady
    tensors: list[Tensor] = field(default_factory=list)
    bands: list[Band] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    calls: list[RowCall] = field(default_factory=list)
    blocks: dict[int, int] = field(default_factory=dict)
    stores: dict[int, tuple[int, ...]] = field(default_factory=dict)
    rows: dict[tuple[int, int], int] = field(default_factory=dict)
    """Maps feature and row to the tensor of the computed row."""
    last: dict[int, int] = field(default_factory=dict)
    """Maps a contiguous feature to the tensor of all rows computed so far."""
    shown: dict[int, int] = field(default_factory=dict)
    """See :class:`SlidingStep`."""

    def banded(self) -> Banded:
        network = self.steady.network
        for f, (first, end) in enumerate(self.steady.spans):
            if first < end:
                size = (end - first) * network.features[f].row_bytes
                name = f"{network.features[f].name}.kept"
                self.blocks[f] = self.tensor(f, first, end, size, name)
        for f, (first, end) in self.steady.stored.items():
            size = (end - first) * network.features[f].row_bytes
            names = [
                f"{network.features[f].name}.phase{n}" for n in range(1, self.steady.periods[f])
            ]
            self.stores[f] = tuple(self.tensor(f, first, end, size, name) for name in names)
        for index, layer in enumerate(network.layers):
            if layer.view:
                self.view(layer)
            elif layer.sums:
                self.sums(index, layer)
            elif layer.splits:
                for y in self.steady.made[layer.outputs[0]]:
                    self.row(index, layer, y)
            elif self.steady.made[layer.outputs[0]]:
                self.unsplit(index, layer)
        outputs = [t for f in network.outputs for t in self.read(f, None)]
        stores = (t for stored in self.stores.values() for t in stored)
        kept = (*self.blocks.values(), *stores)
        graph = Graph(
            network.name,
            tuple(self.tensors),
            tuple(self.ops),
            kept,
            tuple(dict.fromkeys((*outputs, *kept))),
        )
        heights = (1,) * len(network.features)
        bands, calls = tuple(self.bands), tuple(self.calls)
        return Banded(network, heights, graph, bands, calls, feeding=SOURCE)

    def tensor(self, feature: int, first: int, end: int, size: int, name: str) -> int:
        dtype = self.steady.network.features[feature].dtype
        self.tensors.append(Tensor(name, size, None, dtype))
        self.bands.append(Band(feature, first, end))
        return len(self.tensors) - 1

    def read(self, feature: int, rows: tuple[int, int] | None) -> list[int]:
        """Return the tensors that hold the given rows of a feature (None: all rows)."""
        feature = self.shown.get(feature, feature)
        first, end = rows or (0, self.steady.network.rows(feature))
        tensors = [self.rows[feature, y] for y in range(first, end) if (feature, y) in self.rows]
        if feature in self.blocks:
            return [self.blocks[feature], *tensors]
        return [self.last[feature]] if feature in self.last else tensors

    def row_tensor(self, feature: int, y: int, end: int) -> tuple[int, int | None]:
        """Return a tensor for computed rows, and the tensor of which it is a view, or None."""
        network = self.steady.network
        known = network.features[feature]
        name, block = f"{known.name}.{y}", self.blocks.get(feature)
        first, stop = self.steady.spans[feature]
        if block is not None and first <= y < stop:  # The block provides the row's bytes.
            self.rows[feature, y] = self.tensor(feature, y, end, 0, name)
            return self.rows[feature, y], None
        if feature not in network.contiguous:
            self.rows[feature, y] = self.tensor(feature, y, end, known.row_bytes, name)
            return self.rows[feature, y], None
        before = self.last.get(feature)
        self.last[feature] = self.tensor(feature, y, end, known.size_bytes, name)
        return self.last[feature], before

    def op(
        self, layer: Layer, name: str, inputs: list[int], made: list[tuple[int, int | None]]
    ) -> None:
        view = next((before for _, before in made if before is not None), None)
        reads = [*inputs, *([] if view is None else [view])]
        self.ops.append(
            Op(
                name,
                layer.kind,
                tuple(dict.fromkeys(reads)),
                tuple(t for t, _ in made),
                layer.workspace_bytes,
                view,
            )
        )

    def row(self, index: int, layer: Layer, y: int) -> None:
        inputs: list[int] = []
        for f, need in zip(layer.inputs, layer.needs, strict=True):
            assert need is not None
            inputs += self.read(f, need[y])
        self.op(
            layer,
            f"{layer.name}.{y}",
            inputs,
            [self.row_tensor(f, y, y + 1) for f in layer.outputs],
        )
        self.calls.append(RowCall(index, y, y + 1))

    def sums(self, index: int, layer: Layer) -> None:
        (feature,), (made,) = layer.inputs, layer.outputs
        for y in range(self.steady.rows_computed(index)):
            tensor = self.row_tensor(made, 0, 1)
            self.op(layer, f"{layer.name}.{y}", self.read(feature, (y, y + 1)), [tensor])
            self.calls.append(RowCall(index, y, y + 1))

    def unsplit(self, index: int, layer: Layer) -> None:
        inputs = [t for f in layer.inputs for t in self.read(f, None)]
        height = self.steady.network.rows(layer.outputs[0])
        self.op(layer, layer.name, inputs, [self.row_tensor(f, 0, height) for f in layer.outputs])
        self.calls.append(RowCall(index, 0, height))

    def view(self, layer: Layer) -> None:
        """Register a view, which adds no op; source and view share their retained rows."""
        (source,) = layer.inputs
        for f in layer.outputs:
            if f == self.steady.source:
                self.shown[source] = f
            else:
                self.shown[f] = self.shown.get(source, source)
