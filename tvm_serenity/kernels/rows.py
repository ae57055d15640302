"""Row kernels: kernels that compute a single row of a tensor.

``row_kernel`` removes the loop over output rows (NHWC, batch 1) from any kernel that computes its
rows independently. Each input becomes one parameter per row read (a *slot*), so that rows may be
anywhere in memory. Rows outside of the image become a row of the padding constant, supplied by the
caller; their conditions disappear, and one kernel serves all rows. If the row number matters
otherwise (an average of the elements inside the image), each case has a variant. The arithmetic of
each element is unchanged, for floats in the same order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import tvm
from tvm import relax, s_tir, sym, tirx

from tvm_serenity import compat
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.kernels.nodes import mapped, parts, same
from tvm_serenity.kernels.row_loops import (
    RowValues,
    Tables,
    conjuncts,
    integer,
    replaced,
    row_loops,
    unrolled,
)

MAX_SLOTS = 64
"""The most rows that a kernel may read at a time: each is a pointer parameter."""
MOST_VARIANTS = 8
"""The most variants; beyond it, one kernel takes the row number."""


@dataclass(frozen=True)
class RowParam:
    """A row parameter: the parameter of the unsplit kernel, and the row.

    ``rows[y]``: the input row for output row y, None for the padding row.
    """

    parameter: int
    rows: tuple[int | None, ...]


@dataclass(frozen=True)
class RowKernel:
    """Kernels ``(slots..., complete tensors..., other parameters..., row of the result)``.

    ``variant_of[y]``: the kernel of row y. ``padding[p]``: the value of the padding row of
    parameter p, if it is read. ``numbered``: one kernel replaces more than ``MOST_VARIANTS``
    variants, and takes the row number (one int32) as the parameter before the result. ``complete``:
    the parameters of which each row of the result depends on all rows.
    """

    variants: tuple[Any, ...]
    variant_of: tuple[int, ...]
    slots: tuple[RowParam, ...]
    padding: dict[int, float]
    numbered: Any = None
    complete: tuple[int, ...] = ()


def has_rows(shape: Sequence[int]) -> bool:
    """Return whether a tensor is stored by rows: NHWC with batch 1."""
    return len(shape) == 4 and shape[0] == 1


def row_tables(kernel: tirx.PrimFunc, data: Sequence[int]) -> tuple[int, ...]:
    """Return the parameters, besides ``data``, whose values determine the rows read.

    :func:`row_kernel` needs their values.
    """
    lowered, load = row_loops(kernel), tvm.ir.expr.TensorLoad
    read = [lowered.params[i] for i in data if has_rows(compat.buffer_shape(lowered.params[i]))]
    rows = [
        place.source
        for one in parts(lowered.body, load)
        if any(one.source.same_as(source) for source in read)
        for place in parts(one.indices[1], load)
    ]
    others = [i for i in range(len(kernel.params) - 1) if i not in data]
    return tuple(i for i in others if any(lowered.params[i].same_as(v) for v in rows))


def row_kernel(
    kernel: tirx.PrimFunc,
    data: Sequence[int],
    tables: Mapping[int, npt.NDArray[Any]] = MappingProxyType({}),
) -> RowKernel:
    """Return the row form of ``kernel`` (a PrimFunc of blocks, not yet scheduled).

    ``data``: the parameters that hold activations, which are split into rows. ``tables``:
    parameters with known values (:func:`row_tables`). Raises :class:`UnsupportedError` with the
    reason if rows are not computed independently.
    """
    shape = compat.buffer_shape(kernel.params[-1])
    height = shape[1] if has_rows(shape) else 1
    if height == 1 and not any(has_rows(compat.buffer_shape(kernel.params[i])) for i in data):
        raise UnsupportedError("it has no rows")
    lowered = row_loops(kernel)
    loops = _row_loop(lowered, lowered.params[-1], height)
    known = [(lowered.params[i], values) for i, values in tables.items()]
    return _Cut(lowered, tuple(data), loops.variable, height, known).kernel(loops.body)


@dataclass(frozen=True)
class _Loop:
    variable: tirx.Var
    body: tirx.Stmt


def _row_loop(function: tirx.PrimFunc, result: tirx.Expr, height: int) -> _Loop:
    """Return the outermost loop, which must be the one over the result's rows."""
    statement = function.body
    while isinstance(statement, tirx.For) and integer(statement.extent) == 1 and height > 1:
        statement = replaced(statement.body, statement.loop_var, 0)
    stores = [s for s in parts(statement, tirx.BufferStore) if s.buffer.same_as(result)]
    if not stores:
        raise UnsupportedError("its result is written through another buffer")
    if height == 1:
        return _Loop(tirx.Var("row", "int64"), statement)
    if not isinstance(statement, tirx.For):
        raise UnsupportedError("it is not a single loop over rows")
    variable = statement.loop_var
    if integer(statement.extent) != height or integer(statement.min) != 0:
        raise UnsupportedError("its outermost loop is not the one over rows")
    if not all(_is(store.indices[1], variable) for store in stores):
        raise UnsupportedError("its rows are not computed in order")
    return _Loop(variable, statement.body)


def _is(expr: tirx.Expr, variable: tirx.Var) -> bool:
    return same(sym.Analyzer().simplify(expr), variable)


class _Cut:
    """The split of one kernel: the buffers of its slots, and their padding."""

    def __init__(
        self,
        function: tirx.PrimFunc,
        data: tuple[int, ...],
        row: tirx.Var,
        height: int,
        tables: Tables,
    ) -> None:
        self.function = function
        self.tables = tables
        self.row = row
        self.height = height
        self.data = data
        self.complete: tuple[int, ...] = ()
        self.slots: list[tuple[int, Any, RowValues]] = []  # parameter, buffer, row read
        self.padding: dict[int, float] = {}
        self.guarded: set[int] = set()

    def kernel(self, body: tirx.Stmt) -> RowKernel:
        self.complete = self._read_complete(body)
        body = unrolled(body, self._is_row_index)
        body = self._with_slots(body)
        body = mapped(body, tvm.ir.expr.Call, self._without_guard)
        self._check_unguarded()
        body, out = self._result_row(body)
        order = sorted(
            range(len(self.slots)), key=lambda i: (self.slots[i][0], self.slots[i][2].key)
        )
        rows = sum(self._has_rows(i) for i in order)
        if rows > MAX_SLOTS:
            raise UnsupportedError(
                f"it reads {rows} rows at a time; at most {MAX_SLOTS} are supported"
            )
        params = [self.slots[i][1] for i in order]
        params += [self.function.params[p] for p in self.complete]
        params += [p for i, p in enumerate(self.function.params[:-1]) if i not in self.data]
        variants, variant_of = self._variants(body, [*params, out])
        slots = tuple(self._slot(i) for i in order)
        many = len(variants) > MOST_VARIANTS
        numbered = self._numbered(body, params, out) if many else None
        return RowKernel(variants, variant_of, slots, self.padding, numbered, self.complete)

    def _numbered(self, body: tirx.Stmt, params: Sequence[Any], out: Any) -> Any:
        """Return the kernel that takes the row number."""
        number = tirx.decl_buffer((1,), "int32", "number")
        last = tirx.IntImm("int32", self.height - 1)  # the bound shows that indices fit 32 bits
        read = tirx.Min(tirx.BufferLoad(number, [tirx.IntImm("int64", 0)]), last)
        body = replaced(body, self.row, tirx.Cast(str(self.row.ty.dtype), read))
        return tirx.PrimFunc([*params, number, out], body).with_attr("tirx.noalias", True)

    def _read_complete(self, body: tirx.Stmt) -> tuple[int, ...]:
        """Return the parameters of which all rows are read for each row of the result.

        None if no parameter is read row by row, because nothing would be computed in bands then.
        """
        by_row, complete = set(), set()
        for load in parts(body, tvm.ir.expr.TensorLoad):
            parameter = self._parameter(load.source)
            if parameter is None or not has_rows(compat.buffer_shape(load.source)):
                continue
            variables = _variables(load.indices[1])
            if any(v.same_as(self.row) for v in variables):
                by_row.add(parameter)
            elif variables:
                complete.add(parameter)
        return tuple(sorted(complete)) if by_row - complete else ()

    def _parameter(self, buffer: tirx.Var) -> int | None:
        for index in self.data:
            if index not in self.complete and self.function.params[index].same_as(buffer):
                return index
        return None

    def _is_row_index(self, load: tvm.ir.TensorLoad) -> Any:
        """Return the row index, whose variables must be unrolled, of a load of activations."""
        parameter = self._parameter(load.source)
        if parameter is None or not has_rows(compat.buffer_shape(load.source)):
            return None
        return load.indices[1]

    def _with_slots(self, body: tirx.Stmt) -> Any:
        def slot(load: tvm.ir.TensorLoad) -> Any:
            parameter = self._parameter(load.source)
            if parameter is None:
                return load
            shape = compat.buffer_shape(load.source)
            rest = load.indices[2:] if has_rows(shape) else load.indices
            place = load.indices[1] if has_rows(shape) else tirx.IntImm("int64", 0)
            return tirx.BufferLoad(self._slot_buffer(parameter, load.source, place), list(rest))

        return mapped(body, tvm.ir.expr.TensorLoad, slot)

    def _slot_buffer(self, parameter: int, source: tirx.Var, place: tirx.Expr) -> Any:
        where = RowValues.of(place, self.row, self.height, self.tables)
        for known, buffer, other in self.slots:
            if known == parameter and other == where:
                return buffer
        shape = compat.buffer_shape(source)
        row = shape[2:] if has_rows(shape) else shape
        name = f"{source.name}_{sum(p == parameter for p, _, _ in self.slots)}"
        buffer = tirx.decl_buffer(row, compat.buffer_dtype(source), name)
        self.slots.append((parameter, buffer, where))
        return buffer

    def _has_rows(self, slot: int) -> bool:
        return has_rows(compat.buffer_shape(self.function.params[self.slots[slot][0]]))

    def _rows_of(self, slot: int) -> tuple[int | None, ...]:
        parameter, _, where = self.slots[slot]
        shape = compat.buffer_shape(self.function.params[parameter])
        limit = shape[1] if has_rows(shape) else 1
        return tuple(r if 0 <= r < limit else None for r in where.rows)

    def _slot(self, index: int) -> RowParam:
        return RowParam(self.slots[index][0], self._rows_of(index))

    def _without_guard(self, call: relax.Call) -> Any:
        """Return a load without the condition that keeps it inside of the image's rows."""
        if not str(getattr(call.op, "name", "")).endswith("if_then_else"):
            return call
        condition, value, otherwise = call.args
        reads = self._slots_in(value)
        if not reads:
            return call
        own = [c for c in conjuncts(condition) if self._only_row(c)]
        rest = [c for c in conjuncts(condition) if not self._only_row(c)]
        (slot,) = reads if len(reads) == 1 else (None,)
        pad = _constant(otherwise)
        if slot is None or not self._is_load(value, pad):
            if own:
                raise UnsupportedError("it tests rows by an unknown condition")
            return call
        inside = [all(RowValues.holds(c, self.row, y) for c in own) for y in range(self.height)]
        if inside != [r is not None for r in self._rows_of(slot)]:
            raise UnsupportedError("it skips rows inside of the image")
        parameter = self.slots[slot][0]
        self.guarded.add(slot)
        if pad is None:  # a padding value known only at run time: the guard stays
            if not all(inside):
                self.padding.setdefault(parameter, 0)
            return call
        if not all(inside) and self.padding.setdefault(parameter, pad) != pad:
            raise UnsupportedError("it pads one input with different values")
        if not rest:
            return value
        kept = rest[0]
        for condition in rest[1:]:
            kept = tirx.And(kept, condition)
        return tirx.if_then_else(kept, value, otherwise)

    def _slots_in(self, value: tirx.Expr) -> list[int]:
        loads = parts(value, tvm.ir.expr.TensorLoad)
        slots = [(i, buffer) for i, (_, buffer, _) in enumerate(self.slots)]
        read = [i for load in loads for i, buffer in slots if buffer.same_as(load.source)]
        return list(dict.fromkeys(read))

    @staticmethod
    def _is_load(value: tirx.Expr, pad: float | None) -> bool:
        """Return whether a value is a stored element, or a widened one that equals ``pad`` too."""
        if isinstance(value, tirx.Cast):
            wide, value = np.dtype(str(value.ty.dtype)), value.value
            stored = np.dtype(str(value.ty.dtype))
            exact = stored.kind in "iu" and np.can_cast(stored, wide)
            if pad is None or not exact or not _holds(stored, pad):
                return False
        return isinstance(value, tvm.ir.expr.TensorLoad)

    def _only_row(self, condition: tirx.Expr) -> bool:
        names = _variables(condition)
        return all(v.same_as(self.row) for v in names)

    def _check_unguarded(self) -> None:
        for index in range(len(self.slots)):
            if index not in self.guarded and None in self._rows_of(index):
                raise UnsupportedError("it reads rows outside of the image")

    def _result_row(self, body: tirx.Stmt) -> tuple[Any, Any]:
        """Return the body with a row of the result in place of the tensor."""
        result = self.function.params[-1]
        shape = compat.buffer_shape(result)
        first = 2 if has_rows(shape) else 0
        out = tirx.decl_buffer(shape[first:], compat.buffer_dtype(result), result.name)

        def store(s: tirx.BufferStore) -> Any:
            if not s.buffer.same_as(result):
                return s
            return tirx.BufferStore(out, s.value, list(s.indices[first:]))

        def load(read: tvm.ir.TensorLoad) -> Any:
            if not read.source.same_as(result):
                return read
            if first and self.height > 1 and not _is(read.indices[1], self.row):
                raise UnsupportedError("it reads other rows of its own result")
            return tirx.BufferLoad(out, list(read.indices[first:]))

        body = mapped(body, tvm.ir.expr.TensorLoad, load)
        return mapped(body, tirx.BufferStore, store), out

    def _variants(
        self, body: tirx.Stmt, params: Sequence[Any]
    ) -> tuple[tuple[Any, ...], tuple[int, ...]]:
        def function(statement: tirx.Stmt) -> Any:
            return tirx.PrimFunc(list(params), statement).with_attr("tirx.noalias", True)

        if not any(v.same_as(self.row) for v in _variables(body)):
            return (function(body),), (0,) * self.height
        found: list[Any] = []
        of = []
        for y in range(self.height):
            fixed = s_tir.transform.StmtSimplify()(
                tvm.IRModule(
                    {
                        "main": function(replaced(body, self.row, y)).with_attr(
                            "global_symbol", "main"
                        )
                    }
                )
            )["main"]
            known = next(
                (i for i, f in enumerate(found) if same(f.body, fixed.body)),
                None,
            )
            if known is None:
                known = len(found)
                found.append(fixed)
            of.append(known)
        return tuple(found), tuple(of)


def _holds(dtype: np.dtype[Any], value: float) -> bool:
    return float(np.iinfo(dtype).min) <= value <= float(np.iinfo(dtype).max)


def _variables(node: tirx.Stmt | tirx.Expr) -> list[Any]:
    return parts(node, tirx.Var)


def _constant(expr: tirx.Expr) -> float | None:
    simple = sym.Analyzer().simplify(expr)
    if isinstance(simple, tirx.IntImm):
        return int(simple.value)
    if isinstance(simple, tirx.FloatImm):
        return float(simple.value)
    return None
