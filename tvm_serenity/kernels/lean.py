"""A lean schedule for any kernel: no padded copies, accumulators in a register.

TVM's default kernels write the padded input, the raw sums and every stage of the epilogue to
buffers of their own. ``lean`` changes the loops, not the arithmetic:

1. Every stage that only maps elements (padding, casts, bias, activation) is computed where it is
   read, unless that would repeat an expensive function for every step of a reduction.
2. In a reduction, loops over the output come first and reduction loops inside; its only consumer
   is computed right after each output element, so that the sum never leaves a scalar. A consumer
   of several reductions has all of them computed before each of its elements.
3. Buffers that are then used within one loop nest are allocated there and shrink to what is live.

The order in which each element's terms are added stays the same. A block the schedule cannot
transform stays as it is; the scratch it needs remains and is counted by the planner.
"""

from typing import Any

import tvm
import tvm_ffi
from tvm import s_tir
from tvm.ir.prim import expr as prim

from tvm_serenity.kernels.loops import applied as _try
from tvm_serenity.kernels.loops import blocks_of as _blocks
from tvm_serenity.kernels.loops import is_reduction as _is_reduction
from tvm_serenity.kernels.loops import kinds_of_loops
from tvm_serenity.kernels.tile import SCALAR, Tiling, tiled

LEAN = "serenity.lean"
"""Attribute of kernels that are lean already."""
CHEAP = ("if_then_else", "likely", "reinterpret")
"""Calls, without their namespace, that may be repeated inside a reduction."""

MAX_REPEATED = 8
"""Operations of a stage that may be computed more than once."""


def lean(kernel: Any, tiling: Tiling = SCALAR) -> Any:
    """Return ``kernel`` (a PrimFunc of blocks) in a form that needs little or no scratch.

    ``tiling``: how many elements are summed up at once, where the kernel allows for it. A kernel
    marked as ``LEAN``, or of one opaque block, is returned as it is.
    """
    if LEAN in (kernel.attrs or {}) or kernel.body.block.name_hint != "root":
        return kernel
    schedule = s_tir.Schedule(tvm.IRModule({"main": kernel}))
    inline_stages(schedule)
    _compute_by_row(schedule)
    if tiling == SCALAR or not tiled(schedule, tiling):
        for block in _blocks(schedule):
            if _is_reduction(schedule, block):
                _accumulate_in_place(schedule, block)
    module = s_tir.transform.PlanAndUpdateBufferAllocationLocation()(schedule.mod)
    result = module["main"].with_attr(LEAN, True)
    symbol = (kernel.attrs or {}).get("global_symbol")
    return result if symbol is None else result.with_attr("global_symbol", symbol)


def inline_stages(schedule: Any) -> None:
    """Compute every elementwise stage where it is read; one pass per success, consumers change."""
    refused: set[str] = set()
    while True:
        for block in _blocks(schedule):
            name = schedule.get(block).name_hint
            if name in refused:
                continue
            if _repeats_work(schedule, block) or not _try(schedule.compute_inline, block):
                refused.add(name)
                continue
            break
        else:
            return


def _repeats_work(schedule: Any, block: Any) -> bool:
    """Whether inlining would evaluate an expensive function, or much arithmetic, more often."""
    consumers = schedule.get_consumers(block)
    body = schedule.get(block).body
    if any(_is_reduction(schedule, c) for c in consumers) and _is_expensive(body):
        return True
    if _arithmetic(body) <= MAX_REPEATED:
        return False
    steps = _steps(schedule.get(block))
    written = [region.source for region in schedule.get(block).writes]
    reads = sum(_steps(schedule.get(c)) * _reads(schedule.get(c), written) for c in consumers)
    return reads > steps


def _reads(block: Any, buffers: list[Any]) -> int:
    """How often the expression of a block names one of the buffers."""
    found: list[Any] = []

    def visit(load: Any) -> None:
        if any(load.source.same_as(buffer) for buffer in buffers):
            found.append(load)

    tvm_ffi.structural_walk(block.body, (tvm.ir.expr.TensorLoad, visit))
    return len(found)


def _steps(block: Any) -> int:
    steps = 1
    for variable in block.iter_vars:
        steps *= getattr(variable.dom.extent, "value", 1)
    return int(steps)


def _arithmetic(body: Any) -> int:
    """The operations of an expression on values; indices and conditions are free."""
    found: list[Any] = []

    def visit(expr: Any) -> Any:
        if isinstance(expr, tvm.ir.expr.TensorLoad | prim.CmpExpr | prim.LogicalExpr):
            return tvm_ffi.WalkResult.SKIP
        if isinstance(expr, prim.BinaryOpExpr | prim.Cast) or _is_costly_call(expr):
            found.append(expr)
        return tvm_ffi.WalkResult.ADVANCE

    tvm_ffi.structural_walk(body, (tvm.ir.expr.Expr, visit), order="pre")
    return len(found)


def _compute_by_row(schedule: Any) -> None:
    """Compute one number a row (softmax: maximum, sum) when the row of the result is made."""
    *stages, result = _blocks(schedule)
    loops = list(schedule.get_loops(result))
    extents = [_extent_of(schedule, loop) for loop in loops]
    for block in reversed(stages):
        (written, *more) = schedule.get(block).writes
        shape = [int(extent) for extent in written.source.ty.shape]
        if more or not 0 < len(shape) < len(extents) or shape != extents[: len(shape)]:
            continue
        _try(schedule.compute_at, block, loops[len(shape) - 1], True)


def _extent_of(schedule: Any, loop: Any) -> int:
    return int(getattr(schedule.get(loop).extent, "value", 0))


def _accumulate_in_place(schedule: Any, block: Any) -> None:
    consumers = schedule.get_consumers(block)
    joint = len(consumers) == 1 and not _is_reduction(schedule, consumers[0])
    if joint and _sums(schedule, consumers[0]) > 1:  # then all of them, before each element
        _try(schedule.compute_at, block, schedule.get_loops(consumers[0])[-1], True)
        joint = False
    if len(schedule.get_loops(block)) < len(schedule.get(block).iter_vars):
        return
    spatial, reducing = kinds_of_loops(schedule, block)
    if not spatial or not reducing or not _try(schedule.reorder, *spatial, *reducing):
        return
    if joint:
        _try(schedule.reverse_compute_at, consumers[0], spatial[-1], preserve_unit_loops=True)
    _try(schedule.decompose_reduction, block, reducing[0])


def _sums(schedule: Any, block: Any) -> int:
    """How many reductions a block reads."""
    return sum(_is_reduction(schedule, producer) for producer in schedule.get_producers(block))


def _is_expensive(body: Any) -> bool:
    found = []

    def visit(call: Any) -> None:
        if _is_costly_call(call):
            found.append(call)

    tvm_ffi.structural_walk(body, (tvm.ir.expr.Call, visit))
    return bool(found)


def _is_costly_call(expr: Any) -> bool:
    if not isinstance(expr, tvm.ir.expr.Call):
        return False
    return str(getattr(expr.op, "name", "")).rpartition(".")[2] not in CHEAP
