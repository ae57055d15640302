"""Splits a network into bands of rows: the result is a graph with one op per band.

A feature with band height h becomes one tensor per h rows (the last band may be shorter). A layer
becomes one op per band, which reads the bands that hold the rows it needs. No row is recomputed. A
contiguous feature becomes one storage that is still computed in bands, in ascending order: the
output of each op after the first is a view of the previous op's output.

Resident inputs are in memory from the start, as contiguous bands at fixed offsets, so that dead
input rows become free memory. With ``streamed``, the rows of the first input arrive in order: each
of its bands has an op ``FEED``. If a single layer reads this input, row by row, the layer reads
arriving rows from the caller's memory, and only its outputs are stored.

A feature in slow memory takes no memory in the graph, where its bands have the role ``EXTERNAL``.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from tvm_serenity.errors import InputError
from tvm_serenity.graph import Graph, Op, Role, Tensor
from tvm_serenity.operators.needs import Range
from tvm_serenity.rows.network import Layer, Network, hull

FEED = "FEED"
"""The kind of ops that wait for arriving input rows."""
SOURCE = -1
"""``RowCall.layer`` of an op that stores arriving input rows and computes nothing."""


@dataclass(frozen=True, slots=True)
class Band:
    """A tensor of the graph: rows ``first`` to ``end - 1`` of a feature."""

    feature: int
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class RowCall:
    """The meaning of an op of the graph: it computes rows ``first`` to ``end - 1`` of ``layer``.

    For a layer that sums up rows, these are rows of its input.
    """

    layer: int
    first: int
    end: int
    feeds: bool = False
    """Whether the op waits for ``end - first`` rows of the streamed input."""


@dataclass(frozen=True)
class Banded:
    """A split network: ``graph``, with ``bands`` per tensor and ``calls`` per op.

    ``heights``: rows per band of each feature. ``feeding``: the layer that reads the streamed input
    from the caller's memory, ``SOURCE`` if arriving rows are stored, None without streaming.
    """

    network: Network
    heights: tuple[int, ...]
    graph: Graph
    bands: tuple[Band, ...]
    calls: tuple[RowCall, ...]
    feeding: int | None = None

    @property
    def resident(self) -> tuple[int, ...]:
        """The network's inputs that are in memory from the start."""
        return self.network.inputs if self.feeding is None else self.network.inputs[1:]

    @property
    def held(self) -> tuple[int, ...]:
        """The resident inputs that are not in slow memory."""
        return tuple(f for f in self.resident if not self.network.features[f].slow)


def heights_of(network: Network, rows: int) -> tuple[int, ...]:
    """Return the band height of each feature: ``rows``, but at most the feature's height."""
    if rows < 1:
        raise InputError(f"bands cannot have {rows} rows; use 1 or more rows per band")
    return tuple(min(rows, feature.height) for feature in network.features)


def split(
    network: Network, heights: Sequence[int], *, streamed: bool = False, kept: bool = False
) -> Banded:
    """Return ``network`` split into bands; ``heights`` has the rows per band of each feature.

    ``kept``: arriving rows are stored, even if a layer could read them from the caller's memory.
    Raises :class:`InputError` if a band height is not between 1 and the feature's height, or if
    ``streamed`` is set and the input has one row or a layer needs it unsplit.
    """
    for known, height in zip(network.features, heights, strict=True):
        if not 1 <= height <= known.height:
            raise InputError(
                f"{known.name}: bands cannot have {height} rows; use 1 to {known.height} rows"
            )
    feeding = _feeding(network) if streamed else None
    feeding = SOURCE if kept and streamed else feeding
    build = _Build(network, tuple(heights), feeding)
    for index, feature in enumerate(network.inputs):
        build.input(feature, streamed=streamed and index == 0)
    for index, layer in enumerate(network.layers):
        build.layer(index, layer)
    outputs = [build.pieces[f][-1] for f in network.outputs]
    graph = Graph(
        network.name,
        tuple(build.tensors),
        tuple(build.ops),
        tuple(build.inputs),
        tuple(dict.fromkeys(outputs)),
    )
    return Banded(network, tuple(heights), graph, tuple(build.bands), tuple(build.calls), feeding)


def _feeding(network: Network) -> int:
    """Return the layer that can read the first input as it arrives, or ``SOURCE``."""
    feature = network.inputs[0]
    if network.features[feature].height < 2:
        raise InputError(f"{network.name}: its input has one row, so it cannot arrive row by row")
    if feature in network.contiguous:
        raise InputError(
            f"{network.name}: the input cannot arrive row by row, because a layer reads it unsplit"
        )
    readers = network.readers[feature]
    if len(readers) == 1:
        layer = network.layers[readers[0]]
        same = tuple((y, y + 1) for y in range(network.rows(feature)))
        if layer.inputs == (feature,) and layer.needs == (same,) and not layer.view:
            return readers[0]
    return SOURCE


@dataclass
class _Build:
    network: Network
    heights: tuple[int, ...]
    feeding: int | None
    tensors: list[Tensor] = field(default_factory=list)
    bands: list[Band] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    calls: list[RowCall] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    pieces: dict[int, list[int]] = field(default_factory=dict)
    arrival: int = -1

    def tensor(self, feature: int, first: int, end: int) -> int:
        known = self.network.features[feature]
        rows = known.height if feature in self.network.contiguous else end - first
        role = Role.EXTERNAL if known.slow else Role.ACTIVATION
        self.tensors.append(
            Tensor(f"{known.name}.{first}", rows * known.row_bytes, None, known.dtype, role)
        )
        self.bands.append(Band(feature, first, end))
        return len(self.tensors) - 1

    def spans(self, feature: int) -> list[Range]:
        height, rows = self.network.rows(feature), self.heights[feature]
        return [(y, min(height, y + rows)) for y in range(0, height, rows)]

    def input(self, feature: int, *, streamed: bool) -> None:
        known = self.network.features[feature]
        self.pieces[feature] = []
        if streamed:
            self.tensors.append(Tensor("arrival", 0, role=Role.STATE))
            self.bands.append(Band(feature, 0, 0))
            self.arrival = len(self.tensors) - 1
            if self.feeding != SOURCE:
                return
            for first, end in self.spans(feature):
                band = self.tensor(feature, first, end)
                self.pieces[feature].append(band)
                self.ops.append(Op(f"feed.{first}", FEED, (self.arrival,), (band,)))
                self.calls.append(RowCall(SOURCE, first, end, feeds=True))
            return
        spans = [(0, known.height)] if feature in self.network.contiguous else self.spans(feature)
        for first, end in spans:
            band = self.tensor(feature, first, end)
            self.pieces[feature].append(band)
            self.inputs.append(band)

    def reads(self, feature: int, rows: Range | None) -> list[int]:
        """Return the tensors that hold the given rows of a feature (None: all rows)."""
        pieces = self.pieces[feature]
        if rows is None:
            return [pieces[-1]] if feature in self.network.contiguous else pieces
        after = bisect_right(pieces, rows[0], key=lambda p: self.bands[p].end)
        end = bisect_left(pieces, rows[1], after, key=lambda p: self.bands[p].first)
        holding = pieces[after:end]
        # The last view of a contiguous feature depends on the ops of all bands before it.
        return holding[-1:] if feature in self.network.contiguous else holding

    def layer(self, index: int, layer: Layer) -> None:
        for f in layer.outputs:
            self.pieces[f] = []
        if layer.view:
            self.view(index, layer)
            return
        if layer.sums:
            for piece in tuple(self.pieces[layer.inputs[0]]):
                self.sum(index, layer, piece)
            return
        height = self.network.rows(layer.outputs[0])
        rows = min(self.heights[f] for f in layer.outputs) if layer.splits else height
        for first in range(0, height, rows):
            self.band(index, layer, first, min(height, first + rows))

    def view(self, index: int, layer: Layer) -> None:
        (source,), views = self.reads(layer.inputs[0], None), []
        for f in layer.outputs:
            views.append(self.tensor(f, 0, self.network.rows(f)))
            self.pieces[f] = [views[-1]]
        self.ops.append(Op(layer.name, layer.kind, (source,), tuple(views), view_of=source))
        self.calls.append(RowCall(index, 0, self.network.rows(layer.outputs[0])))

    def sum(self, index: int, layer: Layer, piece: int) -> None:
        """Append the op that adds one band of the input to the sums."""
        (total,), band = layer.outputs, self.bands[piece]
        begun = tuple(self.pieces[total][-1:])
        self.pieces[total].append(self.tensor(total, 0, 1))
        self.ops.append(
            Op(
                f"{layer.name}.{band.first}",
                layer.kind,
                (piece, *begun),
                (self.pieces[total][-1],),
                layer.workspace_bytes,
                begun[0] if begun else None,
            )
        )
        self.calls.append(RowCall(index, band.first, band.end))

    def band(self, index: int, layer: Layer, first: int, end: int) -> None:
        feeds = index == self.feeding
        inputs = [self.arrival] if feeds else []
        for f, need in zip(layer.inputs, layer.needs, strict=True):
            if not feeds:
                inputs += self.reads(f, None if need is None else hull(need, first, end))
        tensors, view = [], None
        for f in layer.outputs:
            if f in self.network.contiguous and first:
                view = self.pieces[f][-1]
                inputs.append(view)
            tensors.append(self.tensor(f, first, end))
        for f, tensor in zip(layer.outputs, tensors, strict=True):
            self.pieces[f].append(tensor)
        features, saved = ((), 0) if feeds else self.overlaps(layer, tensors)
        name = (
            layer.name
            if (first, end) == (0, self.network.rows(layer.outputs[0]))
            else f"{layer.name}.{first}"
        )
        self.ops.append(
            Op(
                name,
                FEED if feeds else layer.kind,
                tuple(dict.fromkeys(inputs)),
                tuple(tensors),
                layer.workspace_bytes,
                view,
                over=tuple(t for t in dict.fromkeys(inputs) if self.bands[t].feature in features),
                over_bytes=saved,
            )
        )
        self.calls.append(RowCall(index, first, end, feeds))

    def overlaps(self, layer: Layer, made: Sequence[int]) -> tuple[tuple[int, ...], int]:
        """Return the input features whose rows an output row may overlap, and the bytes saved.

        Only bands of one row overlap. The result has the inputs with the largest saving only.
        """
        (first, *more), saved = made, dict[int, int]()
        band, contiguous = self.bands[first], self.network.contiguous
        if more or band.end - band.first > 1 or band.feature in contiguous:
            return (), 0
        size = self.tensors[first].size_bytes
        for feature, far in zip(layer.inputs, layer.over, strict=False):
            if far is not None and feature not in contiguous and self.heights[feature] == 1:
                row = self.network.features[feature].row_bytes
                saved[feature] = min(row, size - far)
        most = max(saved.values(), default=0)
        if most <= 0:
            return (), 0
        return tuple(f for f, bytes_saved in saved.items() if bytes_saved == most), most
