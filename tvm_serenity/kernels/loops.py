"""Queries on blocks and loops of a TIR schedule, and the passes from blocks to loops."""

from collections.abc import Callable
from typing import Any

import tvm
from tvm import s_tir, tirx

REDUCE = 2
"""``IterVar.CommReduce``."""


def has_stages(kernel: tirx.PrimFunc) -> bool:
    """Return whether :func:`blocks_of` can list the blocks of ``kernel``: it has a root block."""
    body = kernel.body
    return isinstance(body, s_tir.SBlockRealize) and str(body.block.name_hint) == "root"


def blocks_of(schedule: s_tir.Schedule) -> list[Any]:
    """Return the blocks (stages) of a kernel in order."""
    return list(schedule.get_child_blocks(schedule.get_sblock("root")))


def is_reduction(schedule: s_tir.Schedule, block: s_tir.schedule.SBlockRV) -> bool:
    """Return whether a block sums, or takes a maximum, over some of its loops."""
    return any(int(v.iter_type) == REDUCE for v in schedule.get(block).iter_vars)


def extents_of(buffer: tirx.Var) -> list[int | None]:
    """Return the extents of a buffer, None for those that are not constant."""
    return [int(e.value) if isinstance(e, tirx.IntImm) else None for e in buffer.ty.shape]


def kinds_of_loops(
    schedule: s_tir.Schedule, block: s_tir.schedule.SBlockRV
) -> tuple[list[Any], list[Any]]:
    """Return the innermost loops of a block, one per axis: spatial and reduction loops.

    Both are empty if there are fewer loops than axes.
    """
    variables = schedule.get(block).iter_vars
    loops = list(schedule.get_loops(block))
    if len(loops) < len(variables):
        return [], []
    loops = loops[len(loops) - len(variables) :]
    pairs = list(zip(loops, variables, strict=True))
    reducing = [loop for loop, v in pairs if int(v.iter_type) == REDUCE]
    return [loop for loop, v in pairs if int(v.iter_type) != REDUCE], reducing


def applied(primitive: Callable[..., Any], *arguments: Any, **options: Any) -> bool:
    """Apply a schedule primitive; return False if TVM refuses it."""
    try:
        primitive(*arguments, **options)
    except (s_tir.ScheduleError, RuntimeError, ValueError):
        return False
    return True


def without_blocks() -> list[tvm.transform.Pass]:
    """Return the passes that turn the blocks of a kernel into loops, conditions and stores."""
    t = s_tir.transform
    return [
        t.CanonicalizeLoop(),
        t.LowerInitBlock(),
        t.PlanAndUpdateBufferAllocationLocation(),
        t.ConvertBlocksToOpaque(),
        t.CompactBufferAllocation(),
        t.LowerMatchBuffer(),
        t.StmtSimplify(),
        t.LowerOpaqueBlock(),
    ]
