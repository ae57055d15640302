"""Operators that move elements unchanged, or return their positions."""

from collections.abc import Sequence

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.extents import Extents
from tvm_serenity.operators.needs import Need, RowSources, Seen, rowwise
from tvm_serenity.operators.parts import (
    IntegerMeaning,
    MemoryUse,
    PlainMeaning,
    Rows,
    ShapeMeaning,
    Storage,
)
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Array, OptionsTable, Shape

_MOVES = """
    DEPTH_TO_SPACE FILL SHAPE SPACE_TO_DEPTH UNPACK
"""
_AXIS = 1
"""The option field of PACK's axis."""


def _packed(values: Sequence[Array], options: OptionsTable) -> Array:
    return np.stack(list(values), options.i32(_AXIS))


def _turned(seen: Extents) -> Shape | None:
    order = seen.value(1)
    return None if order is None else tuple(seen.shapes[0][axis] for axis in order)


def _row_axis(op: RowSources) -> int | None:
    """Return the axis to which a transpose moves the rows."""
    (axis,), order = op.axes, list(op.constant(1))
    return order.index(axis) if axis in order else None


def _by_rows(op: Seen) -> tuple[Need, ...]:
    if op.axis is None or _row_axis(op) != op.axis:
        raise UnsupportedError(f"{op.kind} of rows is not computed row by row")
    return (rowwise(op.height, op.sources[0]),)


def _keeps_rows(op: RowSources) -> bool:
    """Return whether a transpose keeps the order of the other axes with several elements."""
    (rows,) = op.axes
    others = [a for a in op.constant(1) if a != rows and op.shapes[0][a] > 1]
    return others == sorted(others)


OPERATORS = (
    Operator(kinds=tuple(_MOVES.split()), integers=IntegerMeaning(moves=True)),
    Operator(
        kinds=("PACK",), numbers=PlainMeaning(known=_packed), integers=IntegerMeaning(moves=True)
    ),
    Operator(kinds=("TOPK_V2",), relax=("topk",), integers=IntegerMeaning(moves=True)),
    Operator(kinds=("BROADCAST_TO",), relax=("broadcast_to",), integers=IntegerMeaning(moves=True)),
    Operator(kinds=("REVERSE_V2",), relax=("flip",), integers=IntegerMeaning(moves=True)),
    Operator(kinds=("TILE",), relax=("repeat", "tile"), integers=IntegerMeaning(moves=True)),
    Operator(
        kinds=("TRANSPOSE",),
        shapes=ShapeMeaning(result=_turned),
        relax=("permute_dims",),
        storage=Storage(use=MemoryUse.TURNED),
        rows=Rows(needs=_by_rows, axis=_row_axis, free=_keeps_rows),
        integers=IntegerMeaning(moves=True),
    ),
)
