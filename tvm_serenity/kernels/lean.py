"""A lean schedule for any kernel: no padded copies, accumulators in a register.

TVM's default kernels write the padded input, the raw sums and each stage of the epilogue to buffers
of their own. ``lean`` changes the loops, not the arithmetic:

1. Each elementwise stage (padding, casts, bias, activation) is computed where it is read, unless
   that would repeat an expensive function in each step of a reduction, or TVM would simplify it
   wrongly there (``kernels.proofs.casts_keep_bounds``).
2. In a reduction, loops over the output come first and reduction loops inside. Its only consumer
   is computed right after each output element, so that the sum stays in a scalar. That requires a
   proof (``kernels.proofs``) that all elements of the consumer are computed. Without a proof
   (padding after a sum), or if a consumer has several reductions, the sums are computed before
   each element of the consumer that reads them.
3. Buffers that are then used within one loop nest are allocated there and shrink to their live
   part.

The terms of each element are added in the same order. A block that the schedule cannot transform
stays; the planner counts the scratch that it needs.

A packed layer (``kernels.packed``) has a separate form, created from its record; so has, in
vectors, the search for a tensor's value range (``kernels.dynamic``).
"""

from functools import lru_cache
from typing import Any

import tvm
from tvm import s_tir, tirx
from tvm.ir.prim import expr as prim

from tvm_serenity import compat
from tvm_serenity.kernels.dot_shapes import Tile
from tvm_serenity.kernels.dot_tiles import dot_tiles
from tvm_serenity.kernels.dynamic import wide_ends
from tvm_serenity.kernels.dynamic_records import BatchSteps
from tvm_serenity.kernels.loops import applied as _try
from tvm_serenity.kernels.loops import blocks_of as _blocks
from tvm_serenity.kernels.loops import extents_of, kinds_of_loops
from tvm_serenity.kernels.loops import is_reduction as _is_reduction
from tvm_serenity.kernels.nodes import parts, walk_down
from tvm_serenity.kernels.proofs import (
    casts_keep_bounds,
    reads_once,
    reads_only_last_element,
    runs_each_once,
)
from tvm_serenity.kernels.records import Packed
from tvm_serenity.kernels.spec_read import kind_of, spec_of
from tvm_serenity.kernels.tile import SCALAR, Tiling, parts_of, tiled
from tvm_serenity.kernels.tile_ranges import joined

LEAN = "serenity.lean"
"""Attribute of kernels that are lean already, or must not change."""
CHEAP = ("if_then_else", "likely", "reinterpret")
"""Calls, without namespace, that may be repeated inside a reduction."""

MAX_REPEATED = 8
"""The most operations of a stage that may be computed more than once."""
MAX_LOADS = 64
"""The most elements in an expression after substitution of others that occur several times."""


def lean(kernel: tirx.PrimFunc, tiling: Tiling = SCALAR, dots: Tile | None = None) -> Any:
    """Return ``kernel`` (a PrimFunc of blocks) in a form that needs little or no scratch.

    ``tiling``: the number of elements summed together, if the kernel allows it. ``dots``: the tile
    of a packed layer, by default the one with the fewest cycles. A kernel marked ``LEAN``, or of
    one opaque block, is returned unchanged. Kernels that compute the same share a form.
    """
    if not may_change(kernel):
        return kernel
    return _as_called(_form(compat.structural_key(compat.anonymous(kernel)), tiling, dots), kernel)


@lru_cache(maxsize=512)
def _form(key: Any, tiling: Tiling, dots: Tile | None) -> Any:
    """Return the lean form of a kernel without a symbol, given by its key."""
    kernel = key.key
    if kind_of(kernel) == Packed.__name__:
        return dot_tiles(spec_of(kernel), dots).with_attr(LEAN, True)
    if tiling.vector and kind_of(kernel) == BatchSteps.__name__:
        return wide_ends(spec_of(kernel)).with_attr(LEAN, True)
    schedule = s_tir.Schedule(tvm.IRModule({"main": kernel}))
    inline_stages(schedule)
    _compute_by_row(schedule)
    made = None if tiling == SCALAR else _in_tiles(schedule, tiling)
    if made is None:
        for block in _blocks(schedule):
            if _is_reduction(schedule, block):
                _accumulate_in_place(schedule, block)
        made = _allocated(schedule)
    return made.with_attr(LEAN, True)


def _allocated(schedule: s_tir.Schedule) -> Any:
    """Return the kernel with its buffers allocated where they are used."""
    passes = [  # allocation needs explicit initialisation of remaining sums
        s_tir.transform.LowerInitBlock(),
        s_tir.transform.PlanAndUpdateBufferAllocationLocation(),
    ]
    return tvm.transform.Sequential(passes)(schedule.mod)["main"]


def _as_called(made: tirx.PrimFunc, kernel: tirx.PrimFunc) -> Any:
    """Return a form of a kernel under its symbol."""
    symbol = (kernel.attrs or {}).get("global_symbol")
    return made if symbol is None else made.with_attr("global_symbol", symbol)


def _in_tiles(schedule: s_tir.Schedule, tiling: Tiling) -> Any:
    """Return the kernel in register tiles, None if it has none."""
    made: list[tirx.PrimFunc] = []

    def tile() -> None:
        for part, own in parts_of(schedule.copy(), tiling):
            if tiled(part, own):
                made.append(_allocated(part))
            else:
                raise ValueError("not a kernel of sums")

    return joined(made) if _try(tile) else None


def may_change(kernel: tirx.PrimFunc) -> bool:
    """Return whether a kernel has stages to schedule: it is not lean, and has elements."""
    if LEAN in (kernel.attrs or {}) or kernel.body.block.name_hint != "root":
        return False
    return all(0 not in extents_of(p) for p in kernel.params if tirx.is_buffer_var(p))


def inline_stages(schedule: s_tir.Schedule) -> None:
    """Compute each elementwise stage where it is read.

    One pass per success, because consumers change.
    """
    refused: set[str] = set()
    while True:
        for block in _blocks(schedule):
            name = schedule.get(block).name_hint
            if name in refused:
                continue
            if not casts_keep_bounds(schedule.get(block).body) or _repeats_work(schedule, block):
                refused.add(name)
                continue
            if not _try(schedule.compute_inline, block):
                refused.add(name)
                continue
            break
        else:
            return


def _repeats_work(schedule: s_tir.Schedule, block: s_tir.schedule.SBlockRV) -> bool:
    """Return whether inlining would repeat an expensive function, or much arithmetic."""
    consumers = schedule.get_consumers(block)
    body = schedule.get(block).body
    if any(_is_reduction(schedule, c) for c in consumers) and _is_expensive(body):
        return True
    written = [region.source for region in schedule.get(block).writes]
    loads = len(parts(body, tvm.ir.expr.TensorLoad))
    most = max((_reads(schedule.get(c), written) for c in consumers), default=0)
    if most > 1 and loads * most > MAX_LOADS:
        return True  # nested double reads double the expression at each stage
    if _arithmetic(body) <= MAX_REPEATED:
        return False
    steps = _steps(schedule.get(block))
    if len(consumers) == 1 and _takes_each_once(schedule.get(consumers[0]), written):
        return False
    reads = sum(_steps(schedule.get(c)) * _reads(schedule.get(c), written) for c in consumers)
    return reads > steps


def _takes_each_once(block: s_tir.SBlock, buffers: list[Any]) -> bool:
    """Return whether a block reads each element of the buffers at most once, as a join does."""
    loads = parts(block.body, tvm.ir.expr.TensorLoad)
    loads = [one for one in loads if any(one.source.same_as(buffer) for buffer in buffers)]
    if len(loads) != 1:
        return False
    own = [v.var for v in block.iter_vars]
    moving = [v.var for v in block.iter_vars if getattr(v.dom.extent, "value", 0) != 1]
    used = []
    for index in loads[0].indices:
        named = [v for v in parts(index, tirx.Var) if any(v.same_as(o) for o in own)]
        if len(named) > 1 or not isinstance(index, tirx.Var | tirx.Add | tirx.Sub | tirx.IntImm):
            return False
        used += named
    return all(sum(v.same_as(u) for u in used) == 1 for v in moving)


def _reads(block: s_tir.SBlock, buffers: list[Any]) -> int:
    """Return how often a block's expression reads one of the buffers."""
    loads = parts(block.body, tvm.ir.expr.TensorLoad)
    return sum(any(load.source.same_as(buffer) for buffer in buffers) for load in loads)


def _steps(block: s_tir.SBlock) -> int:
    steps = 1
    for variable in block.iter_vars:
        steps *= getattr(variable.dom.extent, "value", 1)
    return int(steps)


def _arithmetic(body: tirx.Stmt) -> int:
    """Return the number of operations on values; indices and conditions are free."""
    found: list[Any] = []

    def enter(expr: tirx.Expr) -> bool:
        if isinstance(expr, tvm.ir.expr.TensorLoad | prim.CmpExpr | prim.LogicalExpr):
            return False
        if isinstance(expr, prim.BinaryOpExpr | prim.Cast) or _is_costly_call(expr):
            found.append(expr)
        return True

    walk_down(body, tvm.ir.expr.Expr, enter)
    return len(found)


def _compute_by_row(schedule: s_tir.Schedule) -> None:
    """Compute per-row numbers (softmax: maximum, sum) together with the row of the result."""
    *stages, result = _blocks(schedule)
    loops = list(schedule.get_loops(result))
    extents = [_extent_of(schedule, loop) for loop in loops]
    for block in reversed(stages):
        written = schedule.get(block).writes
        shape = extents_of(written[0].source) if len(written) == 1 else []
        if not 0 < len(shape) < len(extents) or shape != extents[: len(shape)]:
            continue
        _try(schedule.compute_at, block, loops[len(shape) - 1], True)


def _extent_of(schedule: s_tir.Schedule, loop: s_tir.schedule.LoopRV) -> int:
    return int(getattr(schedule.get(loop).extent, "value", 0))


def _accumulate_in_place(schedule: s_tir.Schedule, block: s_tir.schedule.SBlockRV) -> None:
    """Keep the sums of ``block`` in a register if its only consumer allows it."""
    consumers = schedule.get_consumers(block)
    reader = consumers[0] if len(consumers) == 1 else None
    joined = reader is None or _is_reduction(schedule, reader) or not schedule.get_loops(reader)
    if not joined and _sums(schedule, reader) == 1 and _follows(schedule, block, reader):
        return
    if not joined and reads_once(schedule, block, reader):
        _try(schedule.compute_at, block, schedule.get_loops(reader)[-1], True)
    _begin_first(schedule, block)


def _follows(
    schedule: s_tir.Schedule, block: s_tir.schedule.SBlockRV, reader: s_tir.schedule.SBlockRV
) -> bool:
    """Compute each element of ``reader`` right after the element of ``block`` that it reads.

    Return whether this provably computes all elements; otherwise nothing changes. The sum is
    initialised before its first step.
    """
    spatial, reducing = kinds_of_loops(schedule, block)
    if not spatial or not reducing:
        return False
    trial = schedule.copy()
    if not _try(trial.reorder, *spatial, *reducing):
        return False
    if not _try(trial.reverse_compute_at, reader, spatial[-1], preserve_unit_loops=True):
        return False
    if not runs_each_once(trial, reader) or not reads_only_last_element(trial, block, reader):
        return False
    schedule.reorder(*spatial, *reducing)
    schedule.reverse_compute_at(reader, spatial[-1], preserve_unit_loops=True)
    _try(schedule.decompose_reduction, block, reducing[0])
    return True


def _begin_first(schedule: s_tir.Schedule, block: s_tir.schedule.SBlockRV) -> None:
    """Move reduction loops innermost and initialise the sum before them."""
    spatial, reducing = kinds_of_loops(schedule, block)
    if not reducing:
        return
    loops = [schedule.get(loop) for loop in schedule.get_loops(block)][-len(reducing) :]
    last = all(a.same_as(schedule.get(b)) for a, b in zip(loops, reducing, strict=True))
    if not last and not _try(schedule.reorder, *spatial, *reducing):
        return  # loops shared with a consumer cannot be moved
    _try(schedule.decompose_reduction, block, reducing[0])


def _sums(schedule: s_tir.Schedule, block: s_tir.schedule.SBlockRV) -> int:
    """Return the number of reductions that a block reads."""
    return sum(_is_reduction(schedule, producer) for producer in schedule.get_producers(block))


def _is_expensive(body: tirx.Stmt) -> bool:
    return any(_is_costly_call(call) for call in parts(body, tvm.ir.expr.Call))


def _is_costly_call(expr: tirx.Expr) -> bool:
    if not isinstance(expr, tvm.ir.expr.Call):
        return False
    return str(getattr(expr.op, "name", "")).rpartition(".")[2] not in CHEAP
