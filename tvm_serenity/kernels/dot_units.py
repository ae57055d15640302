"""Instructions that multiply and add several pairs of small integers, by what a target has.

A unit adds to each of ``lanes`` 32-bit sums the products of ``group`` values, the same for all
lanes, with weights of its own. Sums wrap around as 32-bit integers do: none saturates.

``vnni``: values 0 to 255 with weights -128 to 127. ``sdot``: both -128 to 127. ``madd``: both of
16 bits, in pairs. A value of the other sign is taken 128 higher or lower (:meth:`Unit.offset`);
whoever packs the weights takes that out of the bias.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import tirx

from tvm_serenity.tvm_targets import has_feature


@dataclass(frozen=True)
class Unit:
    """One of them: its features in LLVM's words, its vectors, and how many registers there are."""

    name: str
    kind: str
    features: tuple[str, ...]
    lanes: int
    group: int
    registers: int
    intrinsic: str

    def offset(self, dtype: str) -> int:
        """Return what is added to a value of ``dtype`` before it is multiplied."""
        if self.kind == "vnni" and dtype == "int8":
            return 128
        return -128 if self.kind == "sdot" and dtype == "uint8" else 0

    def values(self, buffer: tirx.Var, at: Any, count: int, dtype: str) -> Any:
        """Return ``count`` values from ``buffer[at]`` (up to a group) in 32 bits."""
        if self.kind == "madd":
            if count == 1:
                return self.gathered([buffer[at]], 0, dtype)
            pair = buffer[tirx.Ramp(at, 1, 2)].astype("int16x2")
            return tirx.reinterpret("int32", pair)
        if count < self.group:
            return self.gathered([buffer[at + i] for i in range(count)], 0, dtype)
        held = tirx.reinterpret("int32", buffer[tirx.Ramp(at, 1, self.group)])
        return tirx.bitwise_xor(held, _i32(0x80808080)) if self.offset(dtype) else held

    def gathered(self, values: Sequence[Any], fill: int, dtype: str) -> Any:
        """Return a group of single values, ``fill`` for None, as :meth:`values` would."""
        bits = 32 // self.group
        outside = [i for i, value in enumerate(values) if value is None]
        held = _i32(sum((fill & ((1 << bits) - 1)) << (bits * i) for i in outside))
        for i, value in enumerate(values):
            if value is not None:
                one = tirx.bitwise_and(value.astype("int32"), _i32((1 << bits) - 1))
                held = tirx.bitwise_or(held, tirx.shift_left(one, _i32(bits * i)))
        return tirx.bitwise_xor(held, _i32(0x80808080)) if self.offset(dtype) else held

    def same(self, value: int, count: int, dtype: str) -> Any:
        """Return ``count`` times one stored value, as :meth:`values` would."""
        bits = 32 // self.group
        one = (value + self.offset(dtype)) & ((1 << bits) - 1)
        return _i32(sum(one << (bits * i) for i in range(count)))

    def weights(self, buffer: tirx.Var, at: Any, correction: int) -> Any:
        """Return the weights of one step, as :meth:`add` takes them."""
        count = self.lanes * self.group
        held = buffer[tirx.Ramp(at, 1, count)]
        if self.kind != "madd":
            return held if _takes_bytes(self) else tirx.reinterpret(f"int32x{self.lanes}", held)
        wide = held.astype(f"int16x{count}")
        if correction:
            wide = wide + tirx.Broadcast(tirx.const(correction, "int16"), count)
        return wide

    def ones(self, count: int) -> Any:
        """Return weights of 1 for the first ``count`` values of a group, for :meth:`add`."""
        held = tirx.Broadcast(_i32(sum(1 << (8 * i) for i in range(count))), self.lanes)
        return tirx.reinterpret(f"int8x{4 * self.lanes}", held) if _takes_bytes(self) else held

    def add(self, total: Any, values: Any, weights: Any) -> Any:
        """Return ``total`` with the products of a group added to each lane."""
        spread = tirx.Broadcast(values, self.lanes)
        dtype = f"int32x{self.lanes}"
        if self.kind == "madd":
            spread = tirx.reinterpret(f"int16x{2 * self.lanes}", spread)
            return total + tirx.call_llvm_pure_intrin(dtype, self.intrinsic, spread, weights)
        if _takes_bytes(self):
            spread = tirx.reinterpret(f"int8x{4 * self.lanes}", spread)
        return tirx.call_llvm_pure_intrin(dtype, self.intrinsic, total, spread, weights)


def _takes_bytes(unit: Unit) -> bool:
    """Whether LLVM's intrinsic takes vectors of bytes: x86's since LLVM 22."""
    return unit.kind == "sdot" or tvm.target.codegen.llvm_version_major() >= 22


def _i32(bits: int) -> Any:
    return tirx.const(bits - (1 << 32) if bits >> 31 else bits, "int32")


_VNNI, _MADD = "llvm.x86.avx512.vpdpbusd", "llvm.x86"
UNITS = (
    Unit("vnni512", "vnni", ("avx512vnni", "avx512bw"), 16, 4, 32, f"{_VNNI}.512"),
    Unit("vnni256vl", "vnni", ("avx512vnni", "avx512vl"), 8, 4, 32, f"{_VNNI}.256"),
    Unit("vnni256", "vnni", ("avxvnni",), 8, 4, 16, f"{_VNNI}.256"),
    Unit("madd512", "madd", ("avx512bw",), 16, 2, 32, f"{_MADD}.avx512.pmaddw.d.512"),
    Unit("madd256", "madd", ("avx2",), 8, 2, 16, f"{_MADD}.avx2.pmadd.wd"),
    Unit("sdot", "sdot", ("dotprod",), 4, 4, 32, "llvm.aarch64.neon.sdot"),
)
"""All units, the best one first."""
BY_NAME = {unit.name: unit for unit in UNITS}


def units_of(target: tvm.target.Target) -> tuple[Unit, ...]:
    """Return the units that a target has; none of Cortex-M, of plain x86-64, of other kinds."""
    if str(target.kind.name) != "llvm":
        return ()
    return tuple(u for u in UNITS if all(has_feature(target, f) for f in u.features))


MOST_VECTORS = 4
LATENCY = 10
"""Sums that two pipelines keep in flight: an addition takes five cycles."""


@dataclass(frozen=True)
class Tile:
    """How many columns and vectors of channels are summed up at once."""

    columns: int
    vectors: int


def tile_for(unit: Unit, columns: int, channels: int, extra: bool = False) -> Tile:
    """Return the tile that computes ``columns`` x ``channels`` (vectors) in the fewest cycles.

    Of the widest tiles that registers hold. ``extra``: a column needs one more sum, of its values.
    """
    widest: dict[int, Tile] = {}
    for tile in _tiles(unit, columns, channels, extra):
        widest.setdefault(tile.vectors, tile)
    return min(widest.values(), key=lambda tile: _cycles(tile, columns, channels, extra))


def tiles_for(unit: Unit, columns: int, channels: int, extra: bool = False) -> list[Tile]:
    """Return all tiles, that of :func:`tile_for` first, then those of fewest cycles."""
    first = tile_for(unit, columns, channels, extra)
    others = sorted(
        dict.fromkeys(_tiles(unit, columns, channels, extra)),
        key=lambda tile: _cycles(tile, columns, channels, extra),
    )
    return [first, *(tile for tile in others if tile != first)]


def _tiles(unit: Unit, columns: int, channels: int, extra: bool) -> Iterator[Tile]:
    """The tiles that registers hold, the widest first; columns are cut into about equal parts."""
    for held in range(1, min(MOST_VECTORS, channels) + 1):
        most = (unit.registers - held - 2) // (held + extra)
        for width in range(min(most, columns), 0, -1):
            yield Tile(-(-columns // -(-columns // width)), held)


def _cycles(tile: Tile, columns: int, channels: int, extra: bool) -> float:
    """Cycles of all tiles: two units multiply, or spread values; two loads are done a cycle."""
    sums = tile.columns * (tile.vectors + extra)
    loads = tile.vectors + tile.columns
    cycles = max((sums + tile.columns) / 2, loads / 2, LATENCY / 2)
    return cycles * -(-columns // tile.columns) * -(-channels // tile.vectors)
