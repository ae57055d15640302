"""Register tiles: a lean kernel computes several channels and columns of its result together.

``lean`` keeps one sum in a register; each step then loads a value and a weight for one product. A
tile loads a value once for ``channels`` products, and a weight once for ``columns`` products:

    for n, y, column tile, channel tile:
        sums[columns][channels] = 0                  # registers, no memory of the kernel
        for each reduction step:
            sums[column][channel] += value[column] * weight[channel]
        result = epilogue(sums)

The terms of each sum are added in the same order, so that results are bit-identical. If
neighbouring channels of the weights are adjacent in memory, the channels form one vector, from the
sums to the epilogue; a kernel that is only a sum gets an epilogue that stores it. The channels of a
vector belong to one group, which reads the same values.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import tvm
from tvm import s_tir, tirx

from tvm_serenity.kernels.loops import blocks_of, extents_of, is_reduction, kinds_of_loops
from tvm_serenity.kernels.nodes import parts
from tvm_serenity.kernels.tile_borders import inside, taps, with_borders
from tvm_serenity.kernels.tile_ranges import AxisRange, channel_ranges, column_ranges, restricted
from tvm_serenity.tvm_targets import has_feature


@dataclass(frozen=True)
class Tiling:
    """The largest tile: neighbouring channels, neighbouring columns, and use of vectors.

    Tiles divide the extents they split: 12 channels are computed 6 at a time under 8. The channels
    of a vector are a power of two; if no axis is divided well, the kernel is split
    (``kernels.tile_ranges``): 8 of 12 channels, then 4.
    """

    channels: int
    columns: int
    vector: bool
    most_columns: int = 0
    """The most columns of a tile if ``columns`` divides them badly (13, 26)."""
    lanes: int = 8
    """32-bit sums per vector register."""
    border: bool = False
    """Whether to unroll taps whose inputs may be outside of the image."""

    def most_channels(self, columns: int) -> int:
        """Return the channels of a tile, more if few columns leave registers unused."""
        return self.channels * (4 if columns == 1 else 2 if columns < FEW else 1)

    def widest(self, columns: int) -> int:
        """Return the columns of a tile that divides all of them."""
        found = max(d for d in range(1, self.columns + 1) if columns % d == 0)
        if found >= FEW:
            return found
        most = max(self.columns, self.most_columns)
        return max(d for d in range(1, most + 1) if columns % d == 0)


SCALAR = Tiling(1, 1, vector=False)
"""One sum at a time."""
MCU = Tiling(8, 1, vector=False)
"""The tiling of cores without vectors and with 13 registers (Cortex-M)."""
HOST = Tiling(16, 5, vector=True)
"""The tiling of x86-64 and AArch64: 16 vector registers of four or eight 32-bit sums."""
WIDE = Tiling(32, 7, vector=True, most_columns=13, lanes=16)
"""The tiling of AVX-512: 32 registers of sixteen 32-bit sums; 7 divides 14, 28, 56 and 112."""
CACHE = 1 << 19
"""Bytes of weights that stay in the L2 cache while pixels are processed."""
FEW = 4
"""Tiles with fewer columns have few columns."""


def tiling_for(target: tvm.target.Target) -> Tiling:
    """Return the tiling of a TVM target, by its registers."""
    attrs = dict(target.attrs) if target.attrs else {}
    triple = f"{attrs.get('mtriple', '')} {attrs.get('mcpu', '')}"
    embedded = any(name in triple for name in ("thumb", "cortex-m", "riscv32"))
    if str(target.kind.name) != "llvm" or embedded:
        return MCU
    return WIDE if has_feature(target, "avx512f") else HOST


@dataclass(frozen=True)
class _Axes:
    """The channel and column axes of the result (None: no such axis)."""

    rank: int
    channel: int | None
    column: int | None
    contiguous: bool
    group: int = 0
    """Channels of a group, which read the same values; 0: no groups."""
    weights_first: bool = False
    """Whether all pixels are computed with some weights before the next weights."""
    weights: Any = None
    """The buffer of the factor that is read in vectors."""


@dataclass(frozen=True)
class TileWeights:
    """The weights that vector tiles read: ``width`` neighbouring channels per step."""

    buffer: Any
    width: int


def weights_of(schedule: s_tir.Schedule, tiling: Tiling) -> TileWeights | None:
    """Return the weights of a kernel whose tiles all have the same channels; otherwise None.

    ``schedule``: with stages inlined; it may change.
    """
    found = _sums_and_axes(schedule, tiling)
    if found is None or not tiling.vector or not found[2].contiguous or len(found[0]) > 1:
        return None
    widths = {tile.channels for _, tile in parts_of(schedule, tiling)}
    weights = found[2].weights
    loads = parts(schedule.get(found[0][0]).body, tvm.ir.expr.TensorLoad)
    read = [load for load in loads if load.source.same_as(weights)]
    last = [index for load in read for index in load.indices[-1:]]
    if len(widths) > 1 or len(read) > 1 or not isinstance(last[0], tirx.Var):
        return None
    return TileWeights(weights, widths.pop())


def tiled(schedule: s_tir.Schedule, tiling: Tiling, sample: bool = False) -> bool:
    """Schedule a kernel of sums and one stage that reads them; return False for other kernels.

    ``schedule``: with stages inlined; it does not change if the kernel does not fit. ``sample``:
    tile sizes are sampled decisions of the schedule, up to ``tiling``.
    """
    found = _sums_and_axes(schedule, tiling)
    if found is None:
        return False
    sums, result, axes = found
    vector = tiling.vector and axes.contiguous
    around, columns, channels = _cut(schedule, result, axes, tiling, vector, sample)
    vector = vector and channels is not None
    for block in sums:
        _sum_within(schedule, block, around, axes, (vector, columns is not None, tiling.border))
    if columns is not None:
        schedule.unroll(columns)
    if channels is not None:
        (schedule.vectorize if vector else schedule.unroll)(channels)
    return True


def parts_of(schedule: s_tir.Schedule, tiling: Tiling) -> list[tuple[Any, Tiling]]:
    """Return schedules of parts that together compute a kernel's result, and their tiles.

    Return one schedule, of the full kernel, if it has no vectors or its tiles divide it.
    """
    found = _sums_and_axes(schedule, tiling)
    if found is None or not tiling.vector or not found[2].contiguous:
        return [(schedule, tiling)]
    sums, result, axes = found
    assert axes.channel is not None
    loops = [int(schedule.get(loop).extent) for loop in schedule.get_loops(result)]
    width = loops[axes.column] if axes.column is not None else 1
    made = []
    for channels in channel_ranges(loops[axes.channel], axes.group, tiling.most_channels(width)):
        vectors = -(-channels.width // tiling.lanes)
        for columns in _columns(schedule, sums[0], axes, tiling, (width, vectors)):
            ranges = {axes.channel: channels}
            if axes.column is not None:
                ranges[axes.column] = columns
            tile = replace(
                tiling,
                channels=channels.width,
                columns=columns.width,
                most_columns=0,
                border=columns.border,
            )
            made.append((ranges, tile))
    if len(made) == 1:
        return [(schedule, made[0][1])]
    return [(restricted(schedule, ranges), tile) for ranges, tile in made]


def _columns(
    schedule: s_tir.Schedule,
    block: s_tir.schedule.SBlockRV,
    axes: _Axes,
    tiling: Tiling,
    size: tuple[int, int],
) -> list[AxisRange]:
    """Return the ranges of columns; ``size``: columns and vectors of a tile."""
    width, vectors = size
    ranges = column_ranges(width, tiling.columns, tiling.widest(width), vectors)
    if axes.column is None:
        return ranges
    realised = schedule.get(block)
    var = [v.var for v in realised.iter_vars if int(v.iter_type) == 0][axes.column]
    return with_borders(ranges, inside(realised, var, width))


def _sums_and_axes(schedule: s_tir.Schedule, tiling: Tiling) -> tuple[list[Any], Any, _Axes] | None:
    """Return the sums, the stage that reads them, and the axes; None for other kernels."""
    *sums, result = blocks_of(schedule)
    alone = not sums and tiling.vector and len(schedule.get(result).writes) == 1
    if alone and is_reduction(schedule, result):
        schedule.cache_write(result, 0, "global")  # split the sums from a stage that stores them
        *sums, result = blocks_of(schedule)
    if not sums or is_reduction(schedule, result):
        return None
    if not all(is_reduction(schedule, b) and _feeds(schedule, b, result) for b in sums):
        return None
    axes = _axes(schedule, sums[0])
    if axes is None or len(schedule.get_loops(result)) != axes.rank:
        return None
    return sums, result, axes


def _feeds(
    schedule: s_tir.Schedule, block: s_tir.schedule.SBlockRV, result: s_tir.schedule.SBlockRV
) -> bool:
    """Return whether only ``result`` reads ``block``, in the same shape."""
    readers = schedule.get_consumers(block)
    if len(readers) != 1 or not schedule.get(readers[0]).same_as(schedule.get(result)):
        return False
    if len(schedule.get(block).writes) != 1 or len(schedule.get(result).writes) != 1:
        return False
    made = extents_of(schedule.get(block).writes[0].source)
    return None not in made and made == extents_of(schedule.get(result).writes[0].source)


def _axes(schedule: s_tir.Schedule, block: s_tir.schedule.SBlockRV) -> _Axes | None:
    """Return channels and columns; None if no axis is one of channels.

    Channels: the axis that is contiguous in a factor of the sum, or else one that a single factor
    depends on. Columns: the last axis that the weights do not depend on. Weights: the smallest
    factor with the fewest axes that depends on the channels.
    """
    realised = schedule.get(block)
    if any(None in extents_of(region.source) for region in [*realised.reads, *realised.writes]):
        return None
    spatial = [v.var for v in realised.iter_vars if int(v.iter_type) == 0]
    loads = parts(realised.body, tvm.ir.expr.TensorLoad)
    made = realised.writes[0].source
    factors = [load for load in loads if not load.source.same_as(made)]
    last = [index for load in factors for index in _last_index(load)]
    wide = [i for i, v in enumerate(spatial) if any(v.same_as(index) for index in last)]
    own = [
        i for i, v in enumerate(spatial) if _owners(factors, v) == 1 and _extent(realised, i) > 1
    ]
    channel = wide[-1] if wide else (own[0] if own else None)
    if channel is None:
        return None
    named = [load for load in factors if _names(load, spatial[channel])]
    weights = min(named, key=lambda f: (sum(_names(f, v) for v in spatial), _size(f.source)))
    columns = [i for i, v in enumerate(spatial) if not _names(weights, v)]
    group = _group(factors, spatial[channel])
    others = sum(_bytes(f.source) for f in factors if f is not weights)
    first = _bytes(weights.source) > max(others, CACHE)
    column = columns[-1] if columns else None
    return _Axes(len(spatial), channel, column, bool(wide), group, first, weights.source)


def _group(factors: list[Any], var: tirx.Var) -> int:
    """Return the divisor that maps a channel to its group, 0 if there is none."""
    divided = [d for f in factors for i in f.indices for d in parts(i, tirx.FloorDiv)]
    return math.gcd(
        *(int(d.b) for d in divided if d.a.same_as(var) and isinstance(d.b, tirx.IntImm))
    )


def _size(buffer: tirx.Var) -> int:
    size = 1
    for extent in buffer.ty.shape:
        size *= int(extent)
    return size


def _bytes(buffer: tirx.Var) -> int:
    return _size(buffer) * int(tvm.DataType(str(buffer.ty.dtype)).bits) // 8


def _last_index(load: tvm.ir.TensorLoad) -> list[Any]:
    """Return the index along the last axis with more than one element, if there is one.

    For weights in tile order (``kernels.tile_weights``), that of the channels in a tile.
    """
    pairs = list(zip(load.indices, load.source.ty.shape, strict=True))
    while len(pairs) > 1 and int(pairs[-1][1]) == 1:
        pairs.pop()
    return [index.a if isinstance(index, tirx.FloorMod) else index for index, _ in pairs[-1:]]


def _owners(factors: list[Any], var: tirx.Var) -> int:
    return sum(_names(load, var) for load in factors)


def _names(load: tvm.ir.TensorLoad, var: tirx.Var) -> bool:
    return any(used.same_as(var) for index in load.indices for used in parts(index, tirx.Var))


def _extent(block: s_tir.SBlock, axis: int) -> int:
    spatial = [v for v in block.iter_vars if int(v.iter_type) == 0]
    return int(spatial[axis].dom.extent)


def _cut(
    schedule: s_tir.Schedule,
    result: s_tir.schedule.SBlockRV,
    axes: _Axes,
    tiling: Tiling,
    vector: bool,
    sample: bool,
) -> tuple[Any, Any, Any]:
    """Tile the loops of ``result``; return the loop around a tile, and the loops inside."""
    loops = list(schedule.get_loops(result))
    columns = channels = None
    if axes.column is not None:
        most = (tiling.columns, False, sample)
        loops[axes.column], columns = _split(schedule, loops[axes.column], *most)
    assert axes.channel is not None
    several = int(schedule.get(loops[axes.channel]).extent) > axes.group
    most = (math.gcd(axes.group if several else 0, tiling.channels), vector, sample)
    loops[axes.channel], channels = _split(schedule, loops[axes.channel], *most)
    inside = [loop for loop in (columns, channels) if loop is not None]
    pixels = [loop for i, loop in enumerate(loops) if i != axes.channel]
    outer = [loops[axes.channel], *pixels] if axes.weights_first else [*pixels, loops[axes.channel]]
    schedule.reorder(*outer, *inside)
    return outer[-1], columns, channels


def _split(
    schedule: s_tir.Schedule, loop: s_tir.schedule.LoopRV, most: int, power: bool, sample: bool
) -> tuple[Any, Any]:
    """Split a loop by its largest divisor up to ``most`` (a ``power`` of two), or a sample.

    Return the loop and None if there is nothing to split.
    """
    if sample and most > 1:
        outer, inner = schedule.split(loop, schedule.sample_perfect_tile(loop, 2, most))
        return outer, inner
    width = _width(schedule, loop, most, power)
    return tuple(schedule.split(loop, [None, width])) if width > 1 else (loop, None)


def _width(
    schedule: s_tir.Schedule, loop: s_tir.schedule.LoopRV, most: int, power: bool = False
) -> int:
    """Return the largest divisor of a loop's extent up to ``most``."""
    extent = int(schedule.get(loop).extent)
    extent = extent & -extent if power else extent
    return max(d for d in range(1, most + 1) if extent % d == 0)


def _taps(
    schedule: s_tir.Schedule, block: s_tir.schedule.SBlockRV, column: int, reducing: list[Any]
) -> list[Any]:
    """Return the loops of a sum over taps along a row."""
    realised = schedule.get(block)
    own = [v.var for v in realised.iter_vars if int(v.iter_type) == 0]
    steps = [v.var for v in realised.iter_vars if int(v.iter_type) != 0]
    known = taps(realised, own[column])
    pairs = zip(steps, reducing, strict=True)
    return [loop for step, loop in pairs if any(step.same_as(tap) for tap in known)]


def _sum_within(
    schedule: s_tir.Schedule,
    block: s_tir.schedule.SBlockRV,
    around: s_tir.schedule.LoopRV,
    axes: _Axes,
    how: tuple[bool, bool, bool],
) -> None:
    """Compute a sum inside of the tile: its reduction loops outside, the tile's loops inside.

    ``how``: with vectors, with several columns, at a border.
    """
    vector, columns, border = how
    schedule.compute_at(block, around, preserve_unit_loops=True)
    spatial, reducing = kinds_of_loops(schedule, block)
    if border and axes.column is not None:
        for loop in _taps(schedule, block, axes.column, reducing):
            schedule.unroll(loop)
    assert axes.channel is not None
    channel = spatial.pop(axes.channel)
    schedule.reorder(*reducing, *spatial, channel)
    if columns:
        for loop in spatial:
            schedule.unroll(loop)
    if vector:
        schedule.vectorize(channel)
    else:
        schedule.unroll(channel)
    schedule.decompose_reduction(block, reducing[0])
