"""The network as row streaming sees it: feature maps of rows, and which rows a layer needs.

A feature is a tensor stored row by row (NHWC, batch 1: a row is W x C elements); what has no rows
is one row. A layer makes row y of its outputs from some rows of its inputs (``Need``), or from
an input as a whole. Nothing else about a layer matters here: kernels are kept by whoever read the
network, under the layer's index.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from tvm_serenity.errors import GraphError
from tvm_serenity.operators.needs import Need, Range


@dataclass(frozen=True, slots=True)
class Feature:
    """A tensor of ``height`` rows of ``row_bytes`` bytes each, aligned to ``align`` bytes."""

    name: str
    height: int
    row_bytes: int
    align: int = 1
    shape: tuple[int, ...] = ()
    dtype: str = ""

    @property
    def size_bytes(self) -> int:
        """Bytes of all rows."""
        return self.height * self.row_bytes


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer; ``inputs`` and ``outputs`` are features, ``needs`` holds one entry an input.

    A need of None: the whole input, its rows one after the other in memory. All outputs have the
    same height. A ``view`` shows the bytes of its only input under another shape. A layer that
    ``sums`` takes the rows of its only input one after the other into an output of one row.
    ``whole`` says why a layer with rows is not split ("" where it is, or has no rows).
    ``over``: for each input, how many bytes below a row of it that dies the row that is made must
    begin to lie over it, 0 for exactly there; None, or no entry: they stay apart.
    """

    name: str
    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    needs: tuple[Need | None, ...]
    view: bool = False
    sums: bool = False
    whole: str = ""
    workspace_bytes: int = 0
    over: tuple[int | None, ...] = ()

    @property
    def splits(self) -> bool:
        """Whether the layer can run row by row."""
        return all(need is not None for need in self.needs)


@dataclass(frozen=True)
class Network:
    """Layers in a topological order. Raises :class:`GraphError` where parts do not fit."""

    name: str
    features: tuple[Feature, ...]
    layers: tuple[Layer, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    def __post_init__(self) -> None:
        for layer in self.layers:
            _check(self, layer)

    @cached_property
    def producer(self) -> dict[int, int]:
        """The layer that makes a feature."""
        return {f: i for i, layer in enumerate(self.layers) for f in layer.outputs}

    @cached_property
    def readers(self) -> dict[int, tuple[int, ...]]:
        """For each feature, the layers that read it, ascending."""
        found: dict[int, list[int]] = {f: [] for f in range(len(self.features))}
        for index, layer in enumerate(self.layers):
            for f in dict.fromkeys(layer.inputs):
                found[f].append(index)
        return {f: tuple(layers) for f, layers in found.items()}

    @cached_property
    def contiguous(self) -> frozenset[int]:
        """Features whose rows must lie one after the other in memory.

        What a layer reads as a whole, what one makes that is not split or sums up, the
        network's outputs, and both sides of a view.
        """
        found = set(self.outputs)
        for layer in self.layers:
            pairs = zip(layer.inputs, layer.needs, strict=True)
            found.update(f for f, need in pairs if need is None)
            if layer.view:
                found.update((*layer.inputs, *layer.outputs))
            if not layer.splits or layer.sums:
                found.update(layer.outputs)
        return frozenset(found)

    def rows(self, feature: int) -> int:
        """The height of a feature."""
        return self.features[feature].height

    @property
    def splittable(self) -> bool:
        """Whether any layer has more than one row to make."""
        return any(layer.splits and self.rows(layer.outputs[0]) > 1 for layer in self.layers)

    @property
    def left_whole(self) -> tuple[str, ...]:
        """``layer: reason`` of every layer that has rows and is not split."""
        return tuple(f"{layer.name}: {layer.whole}" for layer in self.layers if layer.whole)


def composed(outer: Need, inner: Need) -> Need:
    """Return what ``outer`` needs through a layer with ``inner``, which is then no layer."""
    return tuple(_hull(inner[y] for y in range(first, end)) for first, end in outer)


def hull(need: Sequence[Range], first: int, end: int) -> Range:
    """Return the rows that the output rows ``first``..``end`` need."""
    return _hull(need[first:end])


def _hull(ranges: Iterable[Range]) -> Range:
    real = [(a, b) for a, b in ranges if a < b]
    if not real:
        return (0, 0)
    return min(a for a, _ in real), max(b for _, b in real)


def _check(network: Network, layer: Layer) -> None:
    heights = {network.rows(f) for f in layer.outputs}
    if len(heights) != 1:
        raise GraphError(f"layer {layer.name!r}: its outputs differ in height, {sorted(heights)}")
    (height,) = heights
    for f, need in zip(layer.inputs, layer.needs, strict=True):
        if need is None:
            continue
        if len(need) != height:
            raise GraphError(f"layer {layer.name!r}: needs for {len(need)} rows, it makes {height}")
        source = network.rows(f)
        if any(not 0 <= a <= b <= source for a, b in need):
            raise GraphError(
                f"layer {layer.name!r}: needs rows outside of {network.features[f].name!r}, "
                f"which has {source}"
            )
