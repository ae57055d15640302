"""Fused chains of layers, computed a tile of columns at a time, so that no row between is stored.

A chain is a layer with windows (``window``), the 1x1 convolution before it (``head``) and the 1x1
convolution behind it (``tail``), where each reads only the output of the one before, and no other
layer does. The sums of a mean may be a tail, too. For a tile of an output row, the head computes
only the pixels under the tile's windows, for each row under them, and the tail reads the window's
pixels at once. Both tensors between are workspace: some columns instead of full rows, which would
have to be stored as long as a window reads them.

The price is recomputation: the head's pixels are computed again for every row of windows that reads
them. From one tile of a row to the next, shared pixels move up instead. Without a head no pixel is
recomputed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tvm_serenity.rows.network import Layer, Network, composed


@dataclass(frozen=True, slots=True)
class Columns:
    """The geometry of windows along a row of ``width`` pixels: ``kernel`` wide, from ``-left``."""

    width: int
    out_width: int
    kernel: int
    stride: int
    left: int

    def span(self, tile: int) -> int:
        """Return the pixels under the windows of ``tile`` output pixels, padding included."""
        return (tile - 1) * self.stride + self.kernel

    def shared(self) -> int:
        """Return the pixels that the windows of a tile and of the next tile share."""
        return max(0, self.kernel - self.stride)

    def read(self) -> int:
        """Return the number of pixels of a row that any window reads."""
        starts = (i * self.stride - self.left for i in range(self.out_width))
        return len({x for s in starts for x in range(s, s + self.kernel) if 0 <= x < self.width})

    def borders(self, tile: int) -> tuple[tuple[int, int], ...]:
        """Return the distinct pairs of padding pixels before and behind the tiles' windows."""
        pairs: dict[tuple[int, int], None] = {}
        for first in range(0, self.out_width, tile):
            pairs[self.border(first, tile)] = None
        return tuple(pairs)

    def border(self, first: int, tile: int) -> tuple[int, int]:
        """Return the padding pixels of the tile that begins with output pixel ``first``."""
        begin = first * self.stride - self.left
        return max(0, -begin), max(0, begin + self.span(tile) - self.width)


@dataclass(frozen=True, slots=True)
class Chain:
    """Layers of a network that may be fused, by index; ``head`` or ``tail`` or both exist.

    With a head, windows skip no pixel of a row: their stride is at most their width.
    ``kernel_rows``: rows under a window. ``head_rows``: rows that the head computes in total,
    padding excluded. ``head_bytes`` and ``window_bytes``: bytes of an output pixel of head and
    window. ``head_products``: multiply-accumulates of a pixel of the head.
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
        """Possible tile widths in columns: divisors of an output row, since tiles are equal."""
        width = self.columns.out_width
        return tuple(n for n in range(1, width + 1) if width % n == 0)

    def kept_bytes(self, tile: int) -> int:
        """Return the bytes of the head's pixels that are stored per tile, in full words."""
        if self.head is None:
            return 0
        return -(-self.kernel_rows * self.columns.span(tile) * self.head_bytes // 4) * 4

    def workspace_bytes(self, tile: int) -> int:
        """Return the bytes of the tensors between the layers while a tile is computed."""
        between = 0 if self.tail is None else tile * self.window_bytes
        return self.kept_bytes(tile) + between

    @property
    def extra_products(self) -> int:
        """The recomputed multiply-accumulates, beyond those of the head as its own layer."""
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
                f"tiles of {self.tile} columns do not divide the row; use one of "
                f"{self.chain.widths}"
            )


@dataclass(frozen=True)
class Work:
    """The multiply-accumulates of convolutions and dense layers, and the recomputed ones."""

    products: int
    extra: int = 0

    @property
    def factor(self) -> float:
        """All multiply-accumulates over those without recomputation."""
        return 1.0 + self.extra / self.products if self.products else 1.0


def extra_of(tiles: Iterable[Tiled]) -> int:
    """Return the multiply-accumulates that are recomputed."""
    return sum(one.chain.extra_products for one in tiles)


def tiled(network: Network, tiles: Sequence[Tiled]) -> tuple[Network, tuple[int, ...]]:
    """Return a network with chains as layers, and for each layer its last layer in ``network``.

    Features between the layers of a chain stay without a producer. Raises ``ValueError`` if two
    chains share a layer.
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
    """Return ``network`` with the features inside any chain set to zero bytes.

    A bound on its arena holds for every choice of chains, tiles and work. Take an order of a
    network with chains in tiles, and run each chain as its layers: the head's rows that have not
    been computed yet, which then need no memory, the window's row and the tail's. Their inputs are
    live where the chain runs, and their outputs inside the chain have no bytes: the order's peak is
    no higher, and neither workspace nor recomputation counts.
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
