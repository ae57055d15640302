"""The network of row streaming: feature maps of rows, and the rows that each layer needs.

A feature is a tensor stored row by row (NHWC, batch 1: a row has W x C elements); a tensor without
rows is one row. A layer computes row y of its outputs from some rows of its inputs (``Need``), or
from an unsplit input. Kernels are not part of it; the reader of the network keeps them under the
layer's index.
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
    """A layer; ``inputs`` and ``outputs`` are features, ``needs`` holds one entry per input.

    A need of None means the unsplit input, with consecutive rows in memory. All outputs have the
    same height. A ``view`` is its only input under another shape. A layer that ``sums`` adds the
    rows of its only input into an output of one row. ``whole`` says why a layer with rows is not
    split ("" if it is, or has no rows). ``over``: for each input, the bytes by which an output row
    must begin below a dying row of the input to overlap it, 0 for the same offset; None, or no
    entry: no overlap.
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
    """Layers in topological order; raises :class:`GraphError` if parts do not fit together."""

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
        """The layer that produces each feature."""
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
        """Features whose rows must be consecutive in memory.

        These are unsplit inputs of a layer, outputs of a layer that is unsplit or sums up, the
        network's outputs, and both sides of a view.
        """
        contiguous = set(self.outputs)
        for layer in self.layers:
            pairs = zip(layer.inputs, layer.needs, strict=True)
            contiguous.update(f for f, need in pairs if need is None)
            if layer.view:
                contiguous.update((*layer.inputs, *layer.outputs))
            if not layer.splits or layer.sums:
                contiguous.update(layer.outputs)
        return frozenset(contiguous)

    def rows(self, feature: int) -> int:
        """Return the height of a feature."""
        return self.features[feature].height

    @property
    def splittable(self) -> bool:
        """Whether any layer can be split into several rows."""
        return any(layer.splits and self.rows(layer.outputs[0]) > 1 for layer in self.layers)

    @property
    def unsplit(self) -> tuple[str, ...]:
        """``layer: reason`` of every layer that has rows and is not split."""
        return tuple(f"{layer.name}: {layer.whole}" for layer in self.layers if layer.whole)


def composed(outer: Need, inner: Need) -> Need:
    """Return the rows that ``outer`` needs through a layer with ``inner`` when both are fused."""
    return tuple(_hull(inner[y] for y in range(first, end)) for first, end in outer)


def hull(need: Sequence[Range], first: int, end: int) -> Range:
    """Return the rows that the output rows ``first`` to ``end - 1`` need."""
    return _hull(need[first:end])


def _hull(ranges: Iterable[Range]) -> Range:
    real = [(a, b) for a, b in ranges if a < b]
    if not real:
        return (0, 0)
    return min(a for a, _ in real), max(b for _, b in real)


def _check(network: Network, layer: Layer) -> None:
    heights = {network.rows(f) for f in layer.outputs}
    if len(heights) != 1:
        raise GraphError(
            f"layer {layer.name!r}: its outputs have different heights {sorted(heights)}"
        )
    (height,) = heights
    for f, need in zip(layer.inputs, layer.needs, strict=True):
        if need is None:
            continue
        if len(need) != height:
            raise GraphError(
                f"layer {layer.name!r}: needs are given for {len(need)} rows, but it has {height}"
            )
        source = network.rows(f)
        if any(not 0 <= a <= b <= source for a, b in need):
            raise GraphError(
                f"layer {layer.name!r}: it needs rows outside {network.features[f].name!r}, "
                f"which has {source} rows"
            )
