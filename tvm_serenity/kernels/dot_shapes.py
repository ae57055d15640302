"""Register tiles of dot products: the tiles that registers can hold, and their cost."""

from collections.abc import Iterator
from dataclasses import dataclass

from tvm_serenity.kernels.dot_units import Unit

MOST_VECTORS = 4


@dataclass(frozen=True)
class Tile:
    """The columns and the vectors of channels that are summed together."""

    columns: int
    vectors: int


def tile_for(unit: Unit, columns: int, channels: int, extra: bool = False) -> Tile:
    """Return the tile that computes ``columns`` x ``channels`` (vectors) in the fewest cycles.

    ``extra``: a column needs one more sum, of its values.
    """
    return best_tile(unit, columns, channels, extra)[1]


def best_tile(unit: Unit, columns: int, channels: int, extra: bool) -> tuple[float, Tile]:
    """Return the fewest cycles of a step of all columns and channels, and the widest such tile."""
    widest: dict[int, Tile] = {}
    for tile in _tiles(unit, columns, channels, extra):
        widest.setdefault(tile.vectors, tile)
    found = ((_layer_cycles(unit, t, (columns, channels), extra), t) for t in widest.values())
    return min(found, key=lambda pair: pair[0])


def tiles_for(unit: Unit, columns: int, channels: int, extra: bool = False) -> list[Tile]:
    """Return all tiles, that of :func:`tile_for` first, then by increasing cycles."""
    first = tile_for(unit, columns, channels, extra)
    others = sorted(
        dict.fromkeys(_tiles(unit, columns, channels, extra)),
        key=lambda tile: _layer_cycles(unit, tile, (columns, channels), extra),
    )
    return [first, *(tile for tile in others if tile != first)]


def _tiles(unit: Unit, columns: int, channels: int, extra: bool) -> Iterator[Tile]:
    """Yield the tiles that registers hold, the widest first.

    Columns are split about evenly. Columns that are loaded in several groups stay in registers.
    """
    for held in range(1, min(MOST_VECTORS, channels) + 1):
        most = (unit.registers - held - unit.temporary) // (held + extra + (unit.at_once > 1))
        for width in range(min(most - most % unit.columns, columns), 0, -1):
            yield Tile(-(-columns // -(-columns // width)), held)


def _layer_cycles(unit: Unit, tile: Tile, size: tuple[int, int], extra: bool) -> float:
    """Return the cycles of a step of all columns and channels (vectors), given as ``size``."""
    columns, channels = size
    tiles = -(-columns // tile.columns) * -(-channels // tile.vectors)
    return _cycles(unit, tile, extra) * tiles


def _cycles(unit: Unit, tile: Tile, extra: bool) -> float:
    """Return the cycles of a step.

    On x86 two units multiply or move values, and two loads start per cycle; on Arm two instructions
    of any kind.
    """
    shared = -(-tile.columns // unit.columns)
    sums = shared * (unit.columns * tile.vectors + extra)
    loads = tile.vectors * unit.columns + tile.columns / unit.at_once
    if unit.at_once == 1:
        return max((sums + tile.columns) / 2, loads / 2, unit.in_flight / 2)
    if unit.kind == "smull":  # two instructions a sum; values are spread
        return max((2 * sums + tile.columns + loads) / 2, unit.in_flight / 2)
    moves = shared if unit.columns > 1 else 0
    return max((sums + moves + loads) / 2, unit.in_flight / 2)
