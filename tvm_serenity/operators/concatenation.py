"""CONCATENATION: tensors joined along an axis, each rescaled to the result's scale."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.extents import Extents
from tvm_serenity.operators.functions import looked_up
from tvm_serenity.operators.needs import Need, Seen, rowwise, stacked
from tvm_serenity.operators.parts import (
    IntegerMeaning,
    MemoryUse,
    PlainMeaning,
    Rows,
    ShapeMeaning,
    Storage,
)
from tvm_serenity.operators.record import Operator, no_scratch
from tvm_serenity.operators.scene import (
    ALL,
    Array,
    Calls,
    Expr,
    OptionsTable,
    Scene,
    Shape,
    Stored,
)
from tvm_serenity.operators.table_bounds import check_table, nearest
from tvm_serenity.quantize import tables

_AXIS, _ACTIVATION = 0, 1


@dataclass(frozen=True)
class Concatenation:
    """Tensors joined along ``axis``."""

    sources: tuple[Stored, ...]
    result: Stored
    axis: int
    rounding: str

    def table(self, source: Stored) -> Array:
        """Return the table that rescales the 256 values of an input to the result's scale."""
        made = tables.concatenated(source.params, self.result.params, self.rounding)
        bounds = nearest(lambda x: x, source.params, self.result.params)
        limits = self.result.params.limits
        return check_table("CONCATENATION", made, source.params, bounds.limited(*limits))


def _read(scene: Scene) -> Concatenation:
    sources, result = scene.inputs(), scene.result()
    scene.only(ALL, *sources, result)
    if scene.limits(result, _ACTIVATION) != result.params.limits:
        raise UnsupportedError("CONCATENATION with a fused activation is not supported")
    return joined(sources, result, scene.options.i32(_AXIS), scene.rounding)


def joined(sources: Sequence[Stored], result: Stored, axis: int, rounding: str) -> Concatenation:
    """Return the concatenation of tensors; 16-bit tensors must have one scale."""
    found = Concatenation(tuple(sources), result, axis % len(result.shape), rounding)
    if result.dtype == "int16" and not all(source.alike(result) for source in sources):
        raise UnsupportedError(
            "CONCATENATION of int16 tensors with different scales is not supported"
        )
    return found


def _compute(op: Concatenation, values: Sequence[Expr], calls: Calls) -> Expr:
    made = []
    for source, value in zip(op.sources, values, strict=True):
        if not source.alike(op.result):
            value = looked_up("q_rescale", source, op.table(source), value, calls)
        made.append(value)
    return calls.apply("concat", made, op.axis)


def _reference(op: Concatenation, *arrays: Array) -> Array:
    """``ConcatenationWithScaling``: rescaling in float32, halves round away from zero."""
    parts = [
        op.table(source)[array.astype(np.int64) - source.params.limits[0]]
        if not source.alike(op.result)
        else array
        for source, array in zip(op.sources, arrays, strict=True)
    ]
    return np.concatenate(parts, op.axis)


def _by_rows(op: Seen) -> tuple[Need, ...]:
    if op.axis is None or op.options.i32(_AXIS) % len(op.shapes[0]) != op.axis:
        return tuple(rowwise(op.height, source) for source in op.sources)
    return stacked(op.height, op.sources)


def _known(values: Sequence[Array], options: OptionsTable) -> Array:
    return np.concatenate([np.atleast_1d(value) for value in values], options.i32(_AXIS))


def _shape(seen: Extents) -> Shape | None:
    """Return the shape of the result, None if operands differ in another axis."""
    first = seen.shapes[0]
    axis = seen.options.i32(_AXIS)
    if not -len(first) <= axis < len(first):
        return None
    axis %= len(first)
    around = {(*s[:axis], *s[axis + 1 :]) for s in seen.shapes}
    if len(around) != 1 or any(len(s) != len(first) for s in seen.shapes):
        return None
    return (*first[:axis], sum(s[axis] for s in seen.shapes), *first[axis + 1 :])


OPERATORS = (
    Operator(
        kinds=("CONCATENATION",),
        shapes=ShapeMeaning(result=_shape, by_turn=True),
        numbers=PlainMeaning(known=_known),
        relax=("concat",),
        relay=("concatenate", "qnn.concatenate"),
        storage=Storage(use=MemoryUse.CONCAT, scratch=no_scratch),
        rows=Rows(needs=_by_rows),
        integers=IntegerMeaning(read=_read, compute=_compute, reference=_reference, in_float=True),
    ),
    Operator(kinds=("STABLEHLO_CONCATENATE", "Concat"), storage=Storage(use=MemoryUse.CONCAT)),
)
