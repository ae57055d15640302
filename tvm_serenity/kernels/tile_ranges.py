"""Splits of kernels whose tiles do not divide an axis.

1,000 channels are 31 tiles of 32 and one of 8; 73 columns are 10 tiles of 7 and one of 3. Each part
is the kernel over a range of the axis, with its own schedule; together the parts compute each
element once. A range of channels is within one group. The terms of a sum and their order stay the
same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import s_tir, tirx

from tvm_serenity.kernels.nodes import mapped

LATENCY, A_CYCLE = 4, 2
"""Cycles until a sum can be added to again; products, or loads, per cycle."""
WORTH = 0.9
"""Several parts must take less than this share of the cycles of one part."""
MOST_PARTS = 16


@dataclass(frozen=True)
class AxisRange:
    """A range of an axis, and the width of its tiles, which divides it.

    ``border``: one tile whose windows may extend beyond the image.
    """

    start: int
    count: int
    width: int
    border: bool = False


def cycles(columns: int, vectors: int) -> float:
    """Return the cycles of a tile's step: products of columns and vectors, and their loads."""
    return max(LATENCY, columns * vectors / A_CYCLE, (columns + vectors) / A_CYCLE)


def column_ranges(extent: int, most: int, dividing: int, vectors: int) -> list[AxisRange]:
    """Return the fastest ranges of a column axis, with tiles up to ``most``.

    Return one range if tiles of ``dividing`` columns, which divide the axis, are hardly slower.
    """

    def cost(ranges: Sequence[AxisRange]) -> float:
        return sum(r.count // r.width * cycles(r.width, vectors) for r in ranges)

    whole = [AxisRange(0, extent, dividing)]
    best = min((_in_two(extent, width) for width in range(1, min(most, extent) + 1)), key=cost)
    return best if cost(best) < WORTH * cost(whole) else whole


def _in_two(extent: int, width: int) -> list[AxisRange]:
    rest = extent % width
    ranges = [AxisRange(0, extent - rest, width)]
    return [*ranges, AxisRange(extent - rest, rest, rest)] if rest else ranges


def channel_ranges(extent: int, group: int, most: int) -> list[AxisRange]:
    """Return the ranges of a channel axis: tiles of ``most``, the rest in powers of two.

    ``group``: the channels of a group, 0 for none. Many groups are one range, with tiles that
    divide a group.
    """
    size = group or extent
    each = _powers(size, most)
    if size % most == 0 or len(each) * (extent // size) > MOST_PARTS:
        width = min(size & -size, most)
        return [AxisRange(0, extent, width)]
    if len(each) == 1:
        return [AxisRange(0, extent, each[0].width)]
    starts = range(0, extent, size)
    return [AxisRange(start + r.start, r.count, r.width) for start in starts for r in each]


def _powers(extent: int, most: int) -> list[AxisRange]:
    whole = extent // most * most
    ranges = [AxisRange(0, whole, most)] if whole else []
    start, width = whole, most
    while start < extent:
        width //= 2
        if extent - start >= width:
            ranges.append(AxisRange(start, width, width))
            start += width
    return ranges


def restricted(schedule: s_tir.Schedule, ranges: dict[int, AxisRange]) -> Any:
    """Return a schedule of the kernel over ranges of axes of its result.

    The loops of each block, one per axis, start with those of the result. ``ranges``: by axis.
    """
    kernel = schedule.mod["main"]
    cut: list[tuple[tirx.Var, AxisRange]] = []

    def placed(realize: s_tir.SBlockRealize) -> Any:
        if not realize.iter_values:
            return realize
        values = list(realize.iter_values)
        spatial = [i for i, v in enumerate(realize.block.iter_vars) if int(v.iter_type) == 0]
        for axis, within in ranges.items():
            var = values[spatial[axis]]
            assert isinstance(var, tirx.Var)
            cut.append((var, within))
            values[spatial[axis]] = var + tirx.IntImm(var.ty.dtype, within.start)
        return s_tir.SBlockRealize(values, realize.predicate, realize.block)

    def shorter(loop: tirx.For) -> Any:
        found = [within for var, within in cut if var.same_as(loop.loop_var)]
        if not found:
            return loop
        extent = tirx.IntImm(loop.loop_var.ty.dtype, found[0].count)
        return tirx.For(loop.loop_var, loop.min, extent, loop.kind, loop.body)

    body = mapped(mapped(kernel.body, s_tir.SBlockRealize, placed), tirx.For, shorter)
    return s_tir.Schedule(tvm.IRModule({"main": kernel.with_body(body)}))


def joined(kernels: Sequence[tirx.PrimFunc]) -> Any:
    """Return one kernel that runs ``kernels``, which have the same parameters, in sequence."""
    first, *others = kernels
    bodies, scratch = [first.body.block.body], list(first.body.block.alloc_buffers)
    for kernel in map(s_tir.renew_defs, others):
        body = kernel.body
        for own, shared in zip(kernel.params, first.params, strict=True):
            body = mapped(body, type(own), _renaming(own, shared))
        bodies.append(body.block.body)
        scratch += body.block.alloc_buffers
    if not others:
        return first
    root = first.body.block
    block = s_tir.SBlock(
        root.iter_vars,
        root.reads,
        root.writes,
        root.name_hint,
        tirx.SeqStmt(bodies),
        root.init,
        scratch,
        root.match_buffers,
        root.annotations,
    )
    return first.with_body(s_tir.SBlockRealize([], True, block))


def _renaming(old: tirx.Var, new: tirx.Var) -> Any:
    def rename(var: tirx.Var) -> Any:
        return new if var.same_as(old) else var

    return rename
