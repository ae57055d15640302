"""Kernels as plain loops over tensors with axes, and the transformations that rows need."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import tvm
from tvm import s_tir, sym, tirx

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.kernels.loops import without_blocks
from tvm_serenity.kernels.nodes import mapped, parts

MAX_UNROLLED = 64
"""The most steps of a loop over rows that is unrolled."""
_ROUNDED: dict[str, Callable[[float], int]] = {
    "tirx.floor": math.floor,
    "tirx.ceil": math.ceil,
    "tirx.trunc": math.trunc,
}

Tables = Sequence[tuple[tirx.Var, npt.NDArray[Any]]]
"""Parameters of a kernel with known values."""


def row_loops(kernel: tirx.PrimFunc) -> Any:
    """Return a kernel of blocks as loops, conditions and stores, with axes kept."""
    passes = [*without_blocks(), s_tir.transform.StmtSimplify()]
    module = tvm.IRModule({"main": kernel.with_attr("global_symbol", "main")})
    return tvm.transform.Sequential(passes)(module)["main"]


def integer(expr: tirx.Expr) -> int | None:
    """Return the value of a constant integer."""
    simple = sym.Analyzer().simplify(expr)
    return int(simple.value) if isinstance(simple, tirx.IntImm) else None


def replaced(node: tirx.Stmt | tirx.Expr, variable: tirx.Var, value: tirx.Expr | int) -> Any:
    """Return ``node`` with a variable replaced by an integer or expression."""
    if isinstance(value, int):
        value = tirx.IntImm(str(variable.ty.dtype), value)
    return mapped(node, type(variable), lambda v: value if v.same_as(variable) else v)


def conjuncts(condition: tirx.Expr) -> list[Any]:
    """Return the operands that ``condition`` joins by "and"."""
    if isinstance(condition, tirx.And):
        return [*conjuncts(condition.a), *conjuncts(condition.b)]
    return [condition]


def unrolled(body: tirx.Stmt, index_of: Callable[[Any], Any]) -> Any:
    """Return ``body`` with loops unrolled on which the indices of ``index_of`` depend.

    ``index_of``: maps a load to one of its indices, or None.
    """
    indices = [index_of(load) for load in parts(body, tvm.ir.expr.TensorLoad)]
    wanted = [v for index in indices if index is not None for v in parts(index, tirx.Var)]

    def write_out(loop: tirx.For) -> Any:
        if not any(v.same_as(loop.loop_var) for v in wanted):
            return loop
        extent, first = integer(loop.extent), integer(loop.min)
        if extent is None or first is None or extent > MAX_UNROLLED:
            raise UnsupportedError(f"its loop covers {extent} rows at a time")
        steps = [replaced(loop.body, loop.loop_var, first + i) for i in range(extent)]
        if not steps:  # an empty tensor
            return tirx.Evaluate(0)
        steps = [steps[0], *(_with_own_names(step) for step in steps[1:])]
        return steps[0] if len(steps) == 1 else tirx.SeqStmt(steps)

    return mapped(body, tirx.For, write_out)


def _with_own_names(statement: tirx.Stmt) -> Any:
    """Return a copy of a statement with fresh buffers and values: TVM defines each once."""
    for allocation in parts(statement, tirx.AllocBuffer):
        old = allocation.buffer
        new = tirx.decl_buffer(old.ty.shape, old.ty.dtype, old.name)
        statement = mapped(statement, type(old), _replacing(old, new))
    for bound in parts(statement, tirx.Bind):
        old = bound.var
        statement = mapped(statement, type(old), _replacing(old, tirx.Var(old.name, old.ty)))
    return statement


def _replacing(old: tirx.Var, new: tirx.Var) -> Callable[[Any], Any]:
    return lambda var: new if var.same_as(old) else var


@dataclass(frozen=True)
class RowValues:
    """An expression of the row number, by its values."""

    rows: tuple[int, ...]

    @property
    def key(self) -> tuple[int, ...]:
        """The sort key of slots."""
        return self.rows

    @staticmethod
    def of(expr: tirx.Expr, row: tirx.Var, height: int, tables: Tables = ()) -> "RowValues":
        """Return the values of ``expr`` for all rows; it may depend on ``tables`` only."""
        values = []
        for y in range(height):
            value = integer(_folded(replaced(expr, row, y), tables))
            if value is None:
                raise UnsupportedError("the rows it reads depend on more than the row it computes")
            values.append(value)
        return RowValues(tuple(values))

    @staticmethod
    def holds(condition: tirx.Expr, row: tirx.Var, y: int) -> bool:
        """Return whether a condition on the row number is true for row ``y``."""
        return bool(integer(replaced(condition, row, y)))


def _folded(expr: tirx.Expr, tables: Tables) -> Any:
    """Return an expression with table elements and rounded numbers evaluated."""
    analyzer = sym.Analyzer()

    def element(load: tvm.ir.TensorLoad) -> Any:
        at = [integer(index) for index in load.indices]
        known = next((t for v, t in tables if v.same_as(load.source)), None)
        if known is None or None in at:
            return load
        return tirx.IntImm(str(known.dtype), int(known[tuple(at)]))

    def rounded(call: tvm.ir.expr.Call) -> Any:
        how = _ROUNDED.get(getattr(call.op, "name", ""))
        value = analyzer.simplify(call.args[0]) if how and len(call.args) == 1 else None
        if how is None or not isinstance(value, tirx.FloatImm):
            return call
        return tirx.FloatImm(str(value.ty.dtype), float(how(float(value.value))))

    def cast(made: tirx.Cast) -> Any:
        value, dtype = analyzer.simplify(made.value), str(made.ty.dtype)
        if not isinstance(value, tirx.FloatImm) or np.dtype(dtype).kind not in "iu":
            return made
        return tirx.IntImm(dtype, math.trunc(float(value.value)))

    expr = mapped(expr, tvm.ir.expr.TensorLoad, element)
    expr = mapped(expr, tvm.ir.expr.Call, rounded)
    return mapped(expr, tirx.Cast, cast)
