"""Columns whose window extends beyond the image, and their separate tiles.

A padded input is read as ``if_then_else(inside, x[..], 0)``. Evaluated per product, the condition
costs as much as the product. For columns far from the borders, no condition along the row can fail.
Tiles with other columns are separate parts with their taps unrolled along the row, so that each
condition is constant.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import tvm
from tvm import s_tir, sym, tirx
from tvm.ir.prim import expr as prim

from tvm_serenity.kernels.nodes import mapped, parts
from tvm_serenity.kernels.tile_ranges import AxisRange

MOST_BORDERS = 4
"""The most border tiles of a row that may be separate parts."""


def conditions(block: s_tir.SBlock, var: tirx.Var) -> list[Any]:
    """Return a block's conditions for reading its input that depend on one of its axes."""
    calls = parts(block.body, tvm.ir.expr.Call)
    whole = [c.args[0] for c in calls if str(getattr(c.op, "name", "")).endswith("if_then_else")]
    single = [one for condition in whole for one in _conjuncts(condition)]
    return [one for one in single if any(v.same_as(var) for v in parts(one, tirx.Var))]


def _conjuncts(condition: Any) -> Iterator[Any]:
    if isinstance(condition, prim.And):
        yield from _conjuncts(condition.a)
        yield from _conjuncts(condition.b)
    else:
        yield condition


def taps(block: s_tir.SBlock, var: tirx.Var) -> list[tirx.Var]:
    """Return the reduction axes that decide, with an axis, whether the input is read."""
    named = [v for one in conditions(block, var) for v in parts(one, tirx.Var)]
    steps = [v.var for v in block.iter_vars if int(v.iter_type) != 0]
    return [step for step in steps if any(step.same_as(v) for v in named)]


def inside(block: s_tir.SBlock, var: tirx.Var, extent: int) -> tuple[int, int]:
    """Return the range of an axis for which no condition fails: first value, and end."""
    wanted = conditions(block, var)

    def holds(value: int) -> bool:
        analyzer = sym.Analyzer()
        for v in block.iter_vars:
            if not v.var.same_as(var):
                analyzer.bind(v.var, v.dom)
        at = tirx.IntImm(var.ty.dtype, value)
        return all(
            analyzer.can_prove(mapped(c, type(var), lambda v: at if v.same_as(var) else v))
            for c in wanted
        )

    first = next((v for v in range(extent) if holds(v)), extent)
    last = next((v for v in reversed(range(first, extent)) if holds(v)), first - 1)
    return first, last + 1


def with_borders(ranges: Sequence[AxisRange], within: tuple[int, int]) -> list[AxisRange]:
    """Return ranges of columns, with tiles that are not ``within`` the interior separated."""
    first, end = within
    made: list[AxisRange] = []
    for whole in ranges:
        for start in range(whole.start, whole.start + whole.count, whole.width):
            border = start < first or start + whole.width > end
            last = made[-1] if made else None
            if last is not None and not border and not last.border and last.width == whole.width:
                made[-1] = replace(last, count=last.count + whole.width)
            else:
                made.append(AxisRange(start, whole.width, whole.width, border))
    few = sum(r.border for r in made) <= MOST_BORDERS
    return made if few else list(ranges)
