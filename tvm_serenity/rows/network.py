"""The network of row streaming: features (tensors with rows), and the rows that each layer needs.

A feature is stored row by row (NHWC, batch 1: a row has W x C elements). A tensor without rows is a
feature of one row. A layer computes row y of its outputs from a range of rows of each input
(``Need``), or from an unsplit input. A network does not hold kernels; its users keep them by the
layer's index.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from tvm_serenity.errors import GraphError
from tvm_serenity.operators.needs import Need, Range


@dataclass(frozen=True, slots=True)
class Feature:
    """A tensor of ``height`` rows of ``row_bytes`` bytes each, aligned to ``align`` bytes.

    ``slow``: it lies complete in a slower memory, where layers read and write its rows.
    """

    name: str
    height: int
    row_bytes: int
    align: int = 1
    shape: tuple[int, ...] = ()
    dtype: str = ""
    slow: bool = False

    @property
    def size_bytes(self) -> int:
        """Bytes of all rows."""
        return self.height * self.row_bytes


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer: ``inputs`` and ``outputs`` are indices of features.

    ``needs``: per input, the input rows that each output row needs; None if the layer reads the
    unsplit input, whose rows must be contiguous. All outputs have the same height. ``view``: the
    output shows the bytes of the only input. ``sums``: the layer adds up the rows of its only
    input; the output has one row. ``whole``: the reason why a layer with rows is not split; "" if
    it is split or has no rows. ``over``: per input, the bytes by which an output row must begin
    below a dying input row to overlap it (0: at the same offset); None or a missing entry forbids
    the overlap. ``copies``: the output has the rows of the only input, in another memory.
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
    copies: bool = False

    @property
    def splits(self) -> bool:
        """Whether the layer can run row by row; it may read some of its inputs unsplit."""
        return not self.needs or any(need is not None for need in self.needs)


@dataclass(frozen=True)
class Network:
    """Layers in topological order, and the features that they read and write.

    Raises :class:`GraphError` if the outputs of a layer differ in height, or if ``needs`` does not
    match the heights of inputs and outputs.
    """

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
        """Maps each computed feature to the layer that computes it."""
        return {f: i for i, layer in enumerate(self.layers) for f in layer.outputs}

    @cached_property
    def readers(self) -> dict[int, tuple[int, ...]]:
        """Maps each feature to the layers that read it, ascending."""
        readers: dict[int, list[int]] = {f: [] for f in range(len(self.features))}
        for index, layer in enumerate(self.layers):
            for f in dict.fromkeys(layer.inputs):
                readers[f].append(index)
        return {f: tuple(layers) for f, layers in readers.items()}

    @cached_property
    def contiguous(self) -> frozenset[int]:
        """Features whose rows must be contiguous in memory.

        These are the unsplit inputs of layers, the outputs of layers that are unsplit or sum up
        rows, the network's outputs, and the inputs and outputs of views.
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
        """Return the number of rows of ``feature``."""
        return self.features[feature].height

    @property
    def splittable(self) -> bool:
        """Whether any layer can run row by row and has more than one row."""
        return any(layer.splits and self.rows(layer.outputs[0]) > 1 for layer in self.layers)

    @property
    def unsplit(self) -> tuple[str, ...]:
        """A text ``layer: reason`` for each layer that has rows and cannot be split."""
        return tuple(f"{layer.name}: {layer.whole}" for layer in self.layers if layer.whole)


def composed(outer: Need, inner: Need) -> Need:
    """Return the need of two fused layers: ``outer`` reads what a layer with ``inner`` computes."""
    return tuple(_hull(inner[y] for y in range(first, end)) for first, end in outer)


def hull(need: Sequence[Range], first: int, end: int) -> Range:
    """Return the smallest range of input rows that output rows ``first`` to ``end - 1`` need."""
    return _hull(need[first:end])


def _hull(ranges: Iterable[Range]) -> Range:
    nonempty = [(a, b) for a, b in ranges if a < b]
    if not nonempty:
        return (0, 0)
    return min(a for a, _ in nonempty), max(b for _, b in nonempty)


def _check(network: Network, layer: Layer) -> None:
    heights = {network.rows(f) for f in layer.outputs}
    if len(heights) != 1:
        raise GraphError(
            f"layer {layer.name!r}: its outputs have heights {sorted(heights)}, but all outputs of "
            "a layer must have the same height"
        )
    (height,) = heights
    for f, need in zip(layer.inputs, layer.needs, strict=True):
        if need is None:
            continue
        if len(need) != height:
            raise GraphError(
                f"layer {layer.name!r}: needs has {len(need)} entries for an output of {height} "
                "rows; give one entry per output row"
            )
        source = network.rows(f)
        if any(not 0 <= a <= b <= source for a, b in need):
            raise GraphError(
                f"layer {layer.name!r}: reads rows outside of its input "
                f"{network.features[f].name!r}, which has rows 0 to {source - 1}"
            )
