"""SELECT and SELECT_V2: a boolean condition selects stored values of one of two tensors."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.needs import aligned_axis, on_elements
from tvm_serenity.operators.parts import IntegerMeaning, MemoryUse, PlainMeaning, Rows, Storage
from tvm_serenity.operators.record import Operator, elementwise
from tvm_serenity.operators.scene import ALL, Array, Calls, Expr, Scene, Shape


@dataclass(frozen=True)
class Selection:
    """A selection; ``condition``: the shape to reshape the condition to, None for its own."""

    condition: Shape | None


def selection(kind: str, condition: Shape, first: Shape) -> Selection:
    """Return the selection; SELECT allows one condition per row."""
    if kind == "SELECT" and len(condition) == 1 and len(first) > 1:
        return Selection((*condition, *[1] * (len(first) - 1)))
    return Selection(None)


def _read(scene: Scene) -> Selection:
    condition = scene.operands[0]
    first, second = scene.inputs(1)
    scene.only(ALL, first, second, scene.result())
    if condition is None:
        raise UnsupportedError(f"{scene.kind} without a condition is not supported")
    return selection(scene.kind, condition.shape, first.shape)


def _compute(op: Selection, values: Sequence[Expr], calls: Calls) -> Expr:
    condition, first, second = values
    if op.condition is not None:
        condition = calls.apply("reshape", condition, op.condition)
    return calls.apply("where", condition, first, second)


def _reference(op: Selection, condition: Array, first: Array, second: Array) -> Array:
    shape = condition.shape if op.condition is None else op.condition
    return np.where(condition.reshape(shape), first, second)


def _plain(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    return _compute(selection(scene.kind, scene.shape(0), scene.shape(1)), values, calls)


_SELECT = Operator(
    kinds=("SELECT",),
    numbers=PlainMeaning(form=_plain),
    integers=IntegerMeaning(read=_read, compute=_compute, reference=_reference),
)
OPERATORS = (
    _SELECT,
    replace(
        _SELECT,
        kinds=("SELECT_V2",),
        storage=Storage(use=MemoryUse.ELEMENTWISE),
        rows=Rows(needs=on_elements, axis=aligned_axis),
    ),
    elementwise("Where"),
)
