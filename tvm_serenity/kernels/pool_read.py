"""Recognition of max pools in TVM's kernels, which carry no spec.

The loops must be those of one reduction: each element of the result starts with the least value and
takes the maximum with the elements in its window. The window's place is evaluated for each row and
column, whatever the form of the index.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from tvm import tirx
from tvm.ir.expr import Call, TensorLoad

from tvm_serenity import compat
from tvm_serenity.kernels.lean import lean
from tvm_serenity.kernels.nodes import parts, same
from tvm_serenity.kernels.records import MaxPool
from tvm_serenity.kernels.row_loops import conjuncts, integer, row_loops

TYPES = ("int8", "uint8")
_OPERATIONS: dict[type[Any], Callable[[Any, Any], Any]] = {
    tirx.Add: operator.add,
    tirx.Sub: operator.sub,
    tirx.Mul: operator.mul,
    tirx.LT: operator.lt,
    tirx.LE: operator.le,
    tirx.GT: operator.gt,
    tirx.GE: operator.ge,
    tirx.EQ: operator.eq,
    tirx.NE: operator.ne,
}


@dataclass(frozen=True)
class _Axis:
    """A pool along one axis: stride, distance of taps, padding before."""

    window: int
    step: int
    dilation: int
    before: int


@dataclass(frozen=True)
class _Nest:
    """The loops of a reduction: over the result, over a window, and the stored value."""

    outer: dict[str, int]
    inner: dict[str, int]
    begin: Any
    update: Any


def max_pool_of(kernel: tirx.PrimFunc) -> MaxPool | None:
    """Return the max pool of 8-bit integers that a kernel of two tensors is, otherwise None."""
    if len(kernel.params) != 2:
        return None
    shapes = [compat.buffer_shape(p) for p in kernel.params]
    dtypes = {str(compat.buffer_dtype(p)) for p in kernel.params}
    if len(dtypes) > 1 or not dtypes <= set(TYPES) or any(len(s) != 4 for s in shapes):
        return None
    lowered = row_loops(lean(kernel))
    nest = _nest(lowered.body)
    if nest is None or (shapes[0][0], shapes[1][0]) != (1, 1) or shapes[0][3] != shapes[1][3]:
        return None
    try:
        axes = _axes(nest, lowered, (shapes[0], shapes[1]), str(*dtypes))
    except _UnknownError:
        return None
    (_, height, width, channels), (_, lines, pixels, _) = shapes
    down, along = axes
    return MaxPool(
        (1, height, width, channels),
        (1, lines, pixels, channels),
        str(*dtypes),
        (down.window, along.window),
        (down.step, along.step),
        (down.dilation, along.dilation),
        (down.before, along.before),
    )


class _UnknownError(Exception):
    """The kernel is no max pool."""


def _nest(body: Any) -> _Nest | None:
    """Return the loops of a kernel that is one reduction."""
    outer, at = _loops(body)
    if not isinstance(at, tirx.SeqStmt) or len(at) != 2 or not isinstance(at[0], tirx.BufferStore):
        return None
    inner, update = _loops(at[1])
    if not isinstance(update, tirx.BufferStore) or not isinstance(update.value, tirx.Max):
        return None
    return _Nest(outer, inner, at[0], update)


def _loops(at: Any) -> tuple[dict[str, int], Any]:
    """Return the extents of nested loops by name, and the innermost statement."""
    found: dict[str, int] = {}
    while isinstance(at, tirx.For):
        extent = integer(at.extent)
        if extent is None or integer(at.min) != 0 or at.loop_var.name in found:
            return {}, None
        found[at.loop_var.name] = extent
        at = at.body
    return found, at


def _axes(nest: _Nest, function: Any, shapes: Any, dtype: str) -> tuple[_Axis, _Axis]:
    """Return the window parameters along rows and columns."""
    source, result = function.params
    begin, update, least = nest.begin, nest.update, int(np.iinfo(dtype).min)
    held, term = update.value.a, update.value.b
    condition = None
    if isinstance(term, Call) and str(getattr(term.op, "name", "")).endswith("if_then_else"):
        condition, term, otherwise = term.args
        _known(integer(otherwise) == least)
    _known(integer(begin.value) == least and isinstance(held, TensorLoad))
    _known(begin.buffer.same_as(result) and update.buffer.same_as(result))
    _known(held.source.same_as(result) and same(held.indices, update.indices))
    _known(same(begin.indices, update.indices) and isinstance(term, TensorLoad))
    _known(term.source.same_as(source))
    for index, extent in zip(update.indices, shapes[1], strict=True):
        names = _names(index)
        _known(names == set() if extent == 1 else [nest.outer.get(n) for n in names] == [extent])
        _known(isinstance(index, tirx.Var | tirx.IntImm))
    _known(len({n for i in update.indices for n in _names(i)}) == len(nest.outer))
    _known(same(term.indices[3], update.indices[3]) and integer(term.indices[0]) == 0)
    inside = [] if condition is None else conjuncts(condition)
    found, used = [], set()
    for axis in (1, 2):
        made, taps = _names(update.indices[axis]), _names(term.indices[axis])
        _known(made <= taps and taps - made <= set(nest.inner) and len(taps - made) <= 1)
        mine = [c for c in inside if _names(c) and _names(c) <= taps]
        used |= {id(c) for c in mine}
        loops = [nest.outer[n] for n in made], [nest.inner[n] for n in taps - made]
        each, size = [*made, *(taps - made)], shapes[0][axis]
        found.append(_axis(term.indices[axis], mine, each, loops, size))
    _known(len(used) == len(inside))
    return found[0], found[1]


def _axis(index: Any, inside: Any, names: list[str], loops: Any, size: int) -> _Axis:
    """Return the window parameters along an axis of ``size`` pixels, evaluated at each."""
    made, taps = (loop[0] if loop else 1 for loop in loops)
    given = [names[:1] if loops[0] else [], names[-1:] if loops[1] else []]

    def at(y: int, tap: int) -> dict[str, int]:
        return {**dict.fromkeys(given[0], y), **dict.fromkeys(given[1], tap)}

    before = -_value(index, at(0, 0))
    step = _value(index, at(1, 0)) + before if made > 1 else 1
    dilation = _value(index, at(0, 1)) + before if taps > 1 else 1
    for y, tap in product(range(made), range(taps)):
        pixel = _value(index, at(y, tap))
        _known(pixel == y * step + tap * dilation - before)
        _known(all(_value(c, at(y, tap)) for c in inside) == (0 <= pixel < size))
    _known(step > 0 and dilation > 0 and before >= 0)
    return _Axis(taps, step, dilation, before)


def _names(expr: Any) -> set[str]:
    return {variable.name for variable in parts(expr, tirx.Var)}


def _value(expr: Any, variables: dict[str, int]) -> int:
    """Return the value of an integer expression."""
    if isinstance(expr, tirx.IntImm):
        return int(expr.value)
    if isinstance(expr, tirx.Var) and expr.name in variables:
        return variables[expr.name]
    operation = _OPERATIONS.get(type(expr))
    if operation is None:
        raise _UnknownError
    return int(operation(_value(expr.a, variables), _value(expr.b, variables)))


def _known(*conditions: Any) -> None:
    """Go on where all hold."""
    if not all(bool(condition) for condition in conditions):
        raise _UnknownError
