"""Fused chains of layers that run in tiles of columns and do not store the rows between layers.

A chain has a layer with windows (``window``), and the 1x1 convolution before it (``head``) or after
it (``tail``) or both. Each layer is the only reader of the layer before. The tail may also be the
summation of a mean. For one tile of an output row, the head computes the pixels under the tile's
windows, and the tail reads the window's pixels immediately. The two tensors between the layers are
workspace: they hold a few columns instead of full rows that stay live while a window reads them.

The cost is recomputation: the head computes a pixel again for each row of windows that reads it.
Within a row, pixels that two neighbouring tiles share are moved, not recomputed. A chain without a
head recomputes nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tvm_serenity.rows.network import Layer, Network, composed


@dataclass(frozen=True, slots=True)
class Columns:
    """The geometry of windows along a row, in pixels.

    ``width`` and ``out_width``: of an input and an output row. ``kernel``: the width of a window.
    ``left``: padding pixels before the row.
    """

    width: int
    out_width: int
    kernel: int
    stride: int
    left: int

    def span(self, tile: int) -> int:
        """Return the number of input pixels under ``tile`` windows, padding included."""
        return (tile - 1) * self.stride + self.kernel

    def shared(self) -> int:
        """Return the number of input pixels that two neighbouring tiles share."""
        return max(0, self.kernel - self.stride)

    def read(self) -> int:
        """Return the number of pixels of an input row that at least one window reads."""
        starts = (i * self.stride - self.left for i in range(self.out_width))
        return len({x for s in starts for x in range(s, s + self.kernel) if 0 <= x < self.width})

    def borders(self, tile: int) -> tuple[tuple[int, int], ...]:
        """Return the distinct pairs of left and right padding pixels of all tiles."""
        pairs: dict[tuple[int, int], None] = {}
        for first in range(0, self.out_width, tile):
            pairs[self.border(first, tile)] = None
        return tuple(pairs)

    def border(self, first: int, tile: int) -> tuple[int, int]:
        """Return the left and right padding pixels of the tile that begins at pixel ``first``."""
        begin = first * self.stride - self.left
        return max(0, -begin), max(0, begin + self.span(tile) - self.width)


@dataclass(frozen=True, slots=True)
class Chain:
    """Layers that may be fused, as indices of a network; ``head`` or ``tail`` may be None.

    If there is a head, the stride of windows is at most their width, so they skip no pixel.
    ``kernel_rows``: height of a window. ``head_rows``: rows that the head computes in total, with
    recomputation, without padding. ``image_pixels``: pixels that the head computes as a layer of
    its own. ``head_bytes``, ``window_bytes``: bytes of an output pixel of head and window.
    ``head_products``: multiply-accumulates per output pixel of the head.
    """

    head: int | None
    window: int
    tail: int | None
    columns: Columns
    kernel_rows: int
    head_rows: int
    image_pixels: int
    head_bytes: int
    window_bytes: int
    head_products: int

    @property
    def layers(self) -> tuple[int, ...]:
        """The indices of head, window and tail, without None."""
        return tuple(i for i in (self.head, self.window, self.tail) if i is not None)

    @property
    def widths(self) -> tuple[int, ...]:
        """Possible tile widths in columns: the divisors of the output width."""
        width = self.columns.out_width
        return tuple(n for n in range(1, width + 1) if width % n == 0)

    def kept_bytes(self, tile: int) -> int:
        """Return the bytes of the head's pixels under one tile, rounded up to 4 bytes."""
        if self.head is None:
            return 0
        return -(-self.kernel_rows * self.columns.span(tile) * self.head_bytes // 4) * 4

    def workspace_bytes(self, tile: int) -> int:
        """Return the bytes of the tensors between the layers of one tile."""
        between = 0 if self.tail is None else tile * self.window_bytes
        return self.kept_bytes(tile) + between

    @property
    def extra_products(self) -> int:
        """Number of multiply-accumulates that the head recomputes."""
        if self.head is None:
            return 0
        computed = self.head_rows * self.columns.read()
        return (computed - self.image_pixels) * self.head_products


@dataclass(frozen=True, slots=True)
class Tiled:
    """A chain that is computed in tiles of ``tile`` columns."""

    chain: Chain
    tile: int

    def __post_init__(self) -> None:
        if self.tile not in self.chain.widths:
            raise ValueError(
                f"tiles of {self.tile} columns do not divide the output width; use one of "
                f"{self.chain.widths}"
            )


@dataclass(frozen=True)
class Work:
    """Numbers of multiply-accumulates of convolutions and dense layers.

    ``products``: without recomputation. ``extra``: the recomputed ones.
    """

    products: int
    extra: int = 0

    @property
    def factor(self) -> float:
        """The ratio of all multiply-accumulates to those without recomputation."""
        return 1.0 + self.extra / self.products if self.products else 1.0


def extra_of(tiles: Iterable[Tiled]) -> int:
    """Return the number of multiply-accumulates that ``tiles`` recompute."""
    return sum(one.chain.extra_products for one in tiles)


def tiled(network: Network, tiles: Sequence[Tiled]) -> tuple[Network, tuple[int, ...]]:
    """Return ``network`` with each chain as a single layer, and the origin of each layer.

    The origin is the index in ``network`` of the layer, or of the last layer of the chain. Features
    between the layers of a chain remain, without a producer. Raises ``ValueError`` if two chains
    share a layer.
    """
    known = {index: one for one in tiles for index in one.chain.layers}
    if len(known) < sum(len(one.chain.layers) for one in tiles):
        raise ValueError("two chains share a layer; each layer may be in one chain")
    layers, came_from = [], []
    for index, layer in enumerate(network.layers):
        one = known.get(index)
        if one is not None and index != one.chain.layers[-1]:
            continue
        layers.append(layer if one is None else _joined(network, one))
        came_from.append(index)
    return replace(network, layers=tuple(layers)), tuple(came_from)


def without_between(network: Network, chains: Iterable[Chain]) -> Network:
    """Return ``network`` with zero bytes for the features between the layers of all chains.

    A lower bound on its arena holds for every choice of chains and tiles. Proof: take an order of a
    network with chains in tiles, and replace each op of a chain by ops of its layers: the head's
    rows that were not computed before, the window's row, the tail's row. Their inputs are live
    while the chain's op runs, and the features between them have zero bytes. So the peak is no
    higher, whatever the workspace and the recomputation.
    """
    gone = {network.layers[i].outputs[0] for chain in chains for i in chain.layers[:-1]}
    features = (
        replace(known, row_bytes=0) if f in gone else known
        for f, known in enumerate(network.features)
    )
    return replace(network, features=tuple(features))


def _joined(network: Network, one: Tiled) -> Layer:
    first, *more = (network.layers[i] for i in one.chain.layers)
    need, last = first.needs[0], first
    for layer in more:
        outer = layer.needs[0]
        assert outer is not None
        assert need is not None
        need, last = composed(outer, need), layer
    return replace(
        last,
        inputs=first.inputs,
        needs=(need,),
        workspace_bytes=one.chain.workspace_bytes(one.tile),
        over=(),
    )
