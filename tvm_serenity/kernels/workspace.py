"""Kernels (TIR PrimFuncs) that read and write inside an arena.

TVM's kernels refuse tensors that do not start where their storage starts, and allocate scratch
themselves. ``placeable`` converts a kernel so that each tensor may have any aligned offset and the
caller supplies the scratch: each parameter gets an element offset, the old buffers are declared on
them, and the buffers of the root block become slices of one trailing ``workspace`` parameter.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import s_tir, sym, tirx

from tvm_serenity import compat
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.kernels.nodes import mapped, parts
from tvm_serenity.plan import Buffer, plan

BOUNDS = "serenity.bounds"
"""Attribute of a kernel: the upper bounds of symbols in its sizes, by name."""


@dataclass(frozen=True)
class PackedScratch:
    """The root block's buffers, packed: an offset for each, and the total bytes."""

    buffers: tuple[Any, ...]
    offsets: tuple[int, ...]
    size_bytes: int


def workspace_of(kernel: tirx.PrimFunc) -> int:
    """Return the bytes of scratch that ``kernel`` needs if its buffers share memory."""
    return scratch_of(kernel).size_bytes


def scratch_of(kernel: tirx.PrimFunc, alignment: int = compat.ARENA_ALIGNMENT) -> PackedScratch:
    """Return the packing of a kernel's root block buffers in one workspace.

    A buffer is live from the first to the last loop nest of the root block that touches it.
    """
    block = _root_block(kernel)
    if block is None or not block.alloc_buffers:
        return PackedScratch((), (), 0)
    spans = _spans(kernel, block)
    bounds = kernel.attrs[BOUNDS] if BOUNDS in (kernel.attrs or {}) else {}
    buffers = [
        Buffer(
            f"{i}",
            *spans[i],
            compat.size_bytes(_largest(b, bounds), compat.buffer_dtype(b)),
            alignment,
        )
        for i, b in enumerate(block.alloc_buffers)
    ]
    found = plan(buffers)
    return PackedScratch(tuple(block.alloc_buffers), tuple(found.offsets), found.arena_bytes)


def largest(shape: Sequence[Any], bounds: Mapping[str, int]) -> tuple[list[int], list[str]]:
    """Return extents at the upper bounds of their symbols, and the symbols without a bound.

    A formula is bounded by interval arithmetic.
    """
    analyzer, unknown = sym.Analyzer(), []
    for symbol in dict.fromkeys(v for extent in shape for v in parts(extent, tirx.Var)):
        if symbol.name in bounds:
            analyzer.bind(symbol, tvm.ir.Range(1, int(bounds[symbol.name]) + 1))
        else:
            unknown.append(symbol.name)
    return [int(analyzer.const_int_bound(extent).max_value) for extent in shape], unknown


def _largest(buffer: tirx.Var, bounds: Mapping[str, int]) -> list[int]:
    """Return the shape of scratch.

    Raises :class:`UnsupportedError` if a size in it has no upper bound.
    """
    shape, unknown = largest(buffer.ty.shape, bounds)
    if unknown:
        raise UnsupportedError(
            f"its scratch {buffer.name!r} has a size {unknown[0]!r} without an upper bound: "
            "state it in the function's attribute tir_var_upper_bound"
        )
    return shape


def placeable(kernel: tirx.PrimFunc, alignment: int = compat.ARENA_ALIGNMENT) -> Any:
    """Return ``kernel`` with an offset on each parameter and scratch as its last parameter."""
    kernel = without_offsets(kernel)
    scratch = scratch_of(kernel, alignment)
    params, statements = [], []
    for old in kernel.params:
        if not compat.is_buffer_param(old):
            params.append(old)
            continue
        new = compat.offset_buffer(old, alignment)
        params.append(new)
        statements.append(compat.declare_on(old, new, 0))
    body = kernel.body
    if scratch.size_bytes:
        workspace = compat.workspace_buffer(scratch.size_bytes, alignment)
        params.append(workspace)
        for buffer, offset in zip(scratch.buffers, scratch.offsets, strict=True):
            statements.append(compat.declare_on(buffer, workspace, offset))
        body = _without_allocations(body)
    return tirx.PrimFunc(params, tirx.SeqStmt([*statements, body]), kernel.ret_type, kernel.attrs)


def without_offsets(kernel: tirx.PrimFunc) -> Any:
    """Return ``kernel`` without element offsets of its parameters.

    Some of TVM's kernels state an offset, a variable that only TVM's own calling convention sets.
    """
    params, body = [], kernel.body
    for old in kernel.params:
        new = compat.plain_buffer(old) if compat.is_buffer_param(old) else old
        params.append(new)
        body = body if new is old else mapped(body, type(old), _replacing(old, new))
    if all(new is old for new, old in zip(params, kernel.params, strict=True)):
        return kernel
    return tirx.PrimFunc(params, body, kernel.ret_type, kernel.attrs)


def _replacing(old: tirx.Var, new: tirx.Var) -> Any:
    return lambda var: new if var.same_as(old) else var


def _root_block(kernel: tirx.PrimFunc) -> Any:
    body = kernel.body
    return body.block if isinstance(body, s_tir.SBlockRealize) else None


def _without_allocations(realize: s_tir.SBlockRealize) -> Any:
    block = realize.block
    bare = s_tir.SBlock(
        block.iter_vars,
        block.reads,
        block.writes,
        block.name_hint,
        block.body,
        block.init,
        [],
        block.match_buffers,
        block.annotations,
    )
    return s_tir.SBlockRealize(realize.iter_values, realize.predicate, bare)


def _spans(kernel: tirx.PrimFunc, block: s_tir.SBlock) -> list[tuple[int, int]]:
    """Return for each root block buffer the half-open range of loop nests that touch it.

    A root block without blocks in it is one nest.
    """
    schedule = s_tir.Schedule(kernel)
    nests = _nests(schedule, schedule.get_child_blocks(schedule.get_sblock(block.name_hint)))
    if not nests:
        return [(0, 1)] * len(block.alloc_buffers)
    spans = []
    for buffer in block.alloc_buffers:
        touching = [i for i, nest in enumerate(nests) if any(_touches(b, buffer) for b in nest)]
        spans.append((touching[0], touching[-1] + 1) if touching else (0, len(nests)))
    return spans


def _nests(schedule: s_tir.Schedule, blocks: Sequence[Any]) -> list[list[Any]]:
    """Return the blocks grouped by outermost loop; blocks in one loop run in turns."""
    nests: list[tuple[Any, list[Any]]] = []
    for block in blocks:
        loops = schedule.get_loops(block)
        around = schedule.get(loops[0] if loops else block)
        if not nests or not nests[-1][0].same_as(around):
            nests.append((around, []))
        nests[-1][1].append(schedule.get(block))
    return [inside for _, inside in nests]


def _touches(block: s_tir.SBlock, buffer: tirx.Var) -> bool:
    """Return whether a block names a buffer.

    Regions do not cover what packed functions access.
    """
    if any(region.source.same_as(buffer) for region in [*block.reads, *block.writes]):
        return True
    return any(var.same_as(buffer) for var in parts(block.body, type(buffer)))
