"""Layers made as one, a tile of columns at a time: what lies between them is never a whole row.

A chain is a layer with windows (``window``), the 1x1 convolution before it (``head``) and the 1x1
convolution behind it (``tail``), where each reads what the one before makes and nothing else does.
The sums of a mean are a tail, too.
To make a tile of a row of the chain's result the head makes only the pixels that lie under the
tile's windows, for each row under them, and the tail takes the window's pixels as they come. Both
tensors between them are workspace: some columns instead of whole rows, which would have to stay as
long as a window reads them.

The head's pixels are made anew for every row of windows that reads them, which is the price: they
are work that is done more than once. From one tile of a row to the next those that both need move
up instead. Without a head nothing is computed twice.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tvm_serenity.rows.network import Layer, Network, composed


@dataclass(frozen=True, slots=True)
class Columns:
    """How windows lie along a row of ``width`` pixels: ``kernel`` wide, the first at ``-left``."""

    width: int
    out_width: int
    kernel: int
    stride: int
    left: int

    def span(self, tile: int) -> int:
        """Pixels under the windows of ``tile`` pixels of the result, those outside included."""
        return (tile - 1) * self.stride + self.kernel

    def shared(self) -> int:
        """Pixels that the windows of a tile and of the next one both read."""
        return max(0, self.kernel - self.stride)

    def read(self) -> int:
        """Pixels of a row that any window reads."""
        starts = (i * self.stride - self.left for i in range(self.out_width))
        return len({x for s in starts for x in range(s, s + self.kernel) if 0 <= x < self.width})

    def borders(self, tile: int) -> tuple[tuple[int, int], ...]:
        """Pixels outside of the row before and behind each tile's windows, each pair once."""
        found: dict[tuple[int, int], None] = {}
        for first in range(0, self.out_width, tile):
            found[self.border(first, tile)] = None
        return tuple(found)

    def border(self, first: int, tile: int) -> tuple[int, int]:
        """The same of the tile that begins with pixel ``first`` of the result."""
        begin = first * self.stride - self.left
        return max(0, -begin), max(0, begin + self.span(tile) - self.width)


@dataclass(frozen=True, slots=True)
class Chain:
    """Layers of a network that may be made as one, by their indices; ``head`` or ``tail`` or both.

    With a head, windows leave no pixel of a row out: their stride is at most their width.

    ``kernel_rows``: rows under a window, ``head_rows``: how many of them are made in all, those
    outside of the image left out. ``head_bytes`` and ``window_bytes`` are those of a pixel of what
    head and window make, ``head_products`` what a pixel of the head's takes.
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
        """The layers, first to last."""
        return tuple(i for i in (self.head, self.window, self.tail) if i is not None)

    @property
    def widths(self) -> tuple[int, ...]:
        """Columns that a tile may have: tiles are alike, so they divide a row of the result."""
        whole = self.columns.out_width
        return tuple(n for n in range(1, whole + 1) if whole % n == 0)

    def kept_bytes(self, tile: int) -> int:
        """Bytes of the head's pixels that are kept while a tile is made, in whole words."""
        if self.head is None:
            return 0
        return -(-self.kernel_rows * self.columns.span(tile) * self.head_bytes // 4) * 4

    def workspace_bytes(self, tile: int) -> int:
        """Bytes of what lies between the layers while a tile is made."""
        between = 0 if self.tail is None else tile * self.window_bytes
        return self.kept_bytes(tile) + between

    @property
    def extra_products(self) -> int:
        """Products that are computed again, beyond those of the head as a layer of its own."""
        if self.head is None:
            return 0
        made = self.head_rows * self.columns.read()
        return (made - self.image_pixels) * self.head_products


@dataclass(frozen=True, slots=True)
class Tiled:
    """A chain that is made in tiles of so many columns."""

    chain: Chain
    tile: int

    def __post_init__(self) -> None:
        if self.tile not in self.chain.widths:
            raise ValueError(f"tiles of {self.tile} columns: {self.chain.widths} are alike")


@dataclass(frozen=True)
class Work:
    """The products of a network's convolutions and dense layers, and of those computed again."""

    products: int
    extra: int = 0

    @property
    def factor(self) -> float:
        """All of them over those of the network as it is."""
        return 1.0 + self.extra / self.products if self.products else 1.0


def extra_of(tiles: Iterable[Tiled]) -> int:
    """Return the products that are computed again."""
    return sum(one.chain.extra_products for one in tiles)


def tiled(network: Network, tiles: Sequence[Tiled]) -> tuple[Network, tuple[int, ...]]:
    """Return a network whose chains are layers, and the last layer of ``network`` each one is.

    Features between the layers of a chain stay, and nothing makes them. Raises ``ValueError`` where
    two chains share a layer.
    """
    known = {index: one for one in tiles for index in one.chain.layers}
    if len(known) < sum(len(one.chain.layers) for one in tiles):
        raise ValueError("a layer is part of two chains")
    layers, came_from = [], []
    for index, layer in enumerate(network.layers):
        one = known.get(index)
        if one is not None and index != one.chain.layers[-1]:
            continue
        layers.append(layer if one is None else _joined(network, one))
        came_from.append(index)
    return replace(network, layers=tuple(layers)), tuple(came_from)


def without_between(network: Network, chains: Iterable[Chain]) -> Network:
    """Return ``network`` with what lies between the layers of any chain taking no memory.

    A bound on its arena holds for every choice of chains, tiles and work. Take an order of a
    network with chains in tiles, and run each chain as its layers: the head's rows as far as they
    have not been made, which from then on take nothing, the window's row and the tail's. All that
    these read is live where the chain runs, and what they make beside its result has no bytes: the
    order's peak is no higher, and neither workspace nor what is computed again counts.
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
