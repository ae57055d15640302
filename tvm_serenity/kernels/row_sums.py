"""Reductions over all rows, one row at a time: global pooling and means.

A kernel that sums all rows of its input and then maps the sums is split: ``begin`` and ``add``
accumulate a row, ``finish`` computes the result. Terms are added in the order of the unsplit
kernel, so that floats are bit-identical.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import s_tir, sym, tirx

from tvm_serenity import compat
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.kernels.lean import inline_stages
from tvm_serenity.kernels.loops import applied as _try
from tvm_serenity.kernels.loops import blocks_of as _blocks
from tvm_serenity.kernels.loops import is_reduction as _is_reduction
from tvm_serenity.kernels.loops import kinds_of_loops
from tvm_serenity.kernels.nodes import mapped, parts, same
from tvm_serenity.kernels.row_loops import integer, row_loops
from tvm_serenity.kernels.rows import has_rows


@dataclass(frozen=True)
class RowSums:
    """``begin``, ``add``: ``(row, sums)``; ``finish``: ``(sums, other parameters..., result)``."""

    begin: tirx.PrimFunc
    add: tirx.PrimFunc
    finish: tirx.PrimFunc
    shape: tuple[int, ...]
    dtype: str
    height: int

    @property
    def size_bytes(self) -> int:
        """Bytes of the sums."""
        return int(compat.size_bytes(self.shape, self.dtype))


def row_sums(kernel: tirx.PrimFunc, data: Sequence[int]) -> RowSums:
    """Return the parts of ``kernel`` (a PrimFunc of blocks, not yet scheduled).

    Raises :class:`UnsupportedError` with the reason if it is no sum over all rows.
    """
    (source,) = [kernel.params[i] for i in data] if len(data) == 1 else (None,)
    if source is None or not has_rows(compat.buffer_shape(source)):
        raise UnsupportedError("it reads no rows, or rows of several tensors")
    result = compat.buffer_shape(kernel.params[-1])
    if has_rows(result) and result[1] != 1:
        raise UnsupportedError("its result has several rows")
    height = compat.buffer_shape(source)[1]
    function = row_loops(_rows_outermost(kernel, height))
    return _parts(function, function.params[data[0]], height)


def _rows_outermost(kernel: tirx.PrimFunc, height: int) -> Any:
    schedule = s_tir.Schedule(tvm.IRModule({"main": kernel}))
    inline_stages(schedule)
    blocks = _blocks(schedule)
    if len(blocks) != 2 or not _is_reduction(schedule, blocks[0]):
        raise UnsupportedError("it is not a sum with an elementwise map of the sum")
    spatial, reducing = kinds_of_loops(schedule, blocks[0])
    if not reducing or len(schedule.get(blocks[0]).writes) != 1:
        raise UnsupportedError("it is not a sum with an elementwise map of the sum")
    rows = reducing[0]
    if integer(schedule.get(rows).extent) != height:
        raise UnsupportedError("it does not sum all rows")
    if not _try(schedule.reorder, rows, *spatial, *reducing[1:]):
        raise UnsupportedError("its rows cannot be summed in order")
    schedule.decompose_reduction(blocks[0], rows)
    return schedule.mod["main"]


def _parts(function: tirx.PrimFunc, source: tirx.Var, height: int) -> RowSums:
    sums, statements = _opened(function.body)
    if len(statements) != 3 or not isinstance(statements[1], tirx.For):
        raise UnsupportedError("it is not a sum with an elementwise map of the sum")
    begin, loop, finish = statements
    if integer(loop.extent) != height:
        raise UnsupportedError("its outermost loop is not the one over rows")
    row, body = _on_row(loop, source)
    others = [p for p in function.params[:-1] if not p.same_as(source)]
    if _uses(tirx.SeqStmt([begin, body]), others):
        raise UnsupportedError("its terms depend on more than the row")

    def prim_func(params: list[Any], statement: tirx.Stmt) -> Any:
        return tirx.PrimFunc(params, statement).with_attr("tirx.noalias", True)

    return RowSums(
        prim_func([row, sums], tirx.SeqStmt([begin, body])),
        prim_func([row, sums], body),
        prim_func([sums, *others, function.params[-1]], finish),
        tuple(compat.buffer_shape(sums)),
        compat.buffer_dtype(sums),
        height,
    )


def _opened(body: tirx.Stmt) -> tuple[Any, list[Any]]:
    """Return the single buffer allocated around the statements, and the statements."""
    statements: list[Any] = []
    sums = None
    stack = [body]
    while stack:
        node = stack.pop(0)
        if isinstance(node, tirx.SeqStmt):
            stack[:0] = list(node.seq)
        elif isinstance(node, tirx.AllocBuffer):
            if sums is not None:
                raise UnsupportedError("it has more than one sum")
            sums = node.buffer
            inner = getattr(node, "body", None)
            stack[:0] = [] if inner is None else [inner]
        else:
            statements.append(node)
    if sums is None:
        raise UnsupportedError("it is not a sum with an elementwise map of the sum")
    return sums, statements


def _on_row(loop: tirx.For, source: tirx.Var) -> tuple[Any, Any]:
    """Return the body of the loop over rows, reading one row from its own buffer."""
    shape = compat.buffer_shape(source)
    row = tirx.decl_buffer(shape[2:], compat.buffer_dtype(source), f"{source.name}_row")
    analyzer = sym.Analyzer()

    def load(read: tvm.ir.TensorLoad) -> Any:
        if not read.source.same_as(source):
            return read
        if not same(analyzer.simplify(read.indices[1]), loop.loop_var):
            raise UnsupportedError("a row is read at more than one step")
        return tirx.BufferLoad(row, list(read.indices[2:]))

    body = mapped(loop.body, tvm.ir.expr.TensorLoad, load)
    if any(variable.same_as(loop.loop_var) for variable in parts(body, tirx.Var)):
        raise UnsupportedError("its terms depend on the row's number")
    return row, body


def _uses(body: tirx.Stmt, buffers: Sequence[Any]) -> bool:
    loads = parts(body, tvm.ir.expr.TensorLoad)
    return any(load.source.same_as(b) for load in loads for b in buffers)
