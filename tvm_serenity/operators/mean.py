"""MEAN and SUM along axes: a sum times a multiplier; a mean's multiplier includes 1 / count."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.kernels.records import Mean, Requantise
from tvm_serenity.operators.clamped import clamped
from tvm_serenity.operators.needs import Need, Seen, everything, rowwise
from tvm_serenity.operators.parts import IntegerMeaning, PlainMeaning, Rows
from tvm_serenity.operators.plain import FLOATS
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.reductions import Reduction, read_reduction
from tvm_serenity.operators.scene import Array, Calls, Expr, Scene
from tvm_serenity.quantize.fixed import Multiplier, divided, multiplier, scaled

_AXES, _KEEP = 1, 0


def _by_rows(op: Seen) -> tuple[Need, ...]:
    """Return all rows for a mean over rows, and the same row for one within each row."""
    shape, axis = op.shapes[0], op.axes[0]
    reduced = {a % len(shape) for a in op.constant(_AXES)}
    others = {a for a in range(len(shape) - 1) if a == axis or shape[a] > 1}
    if axis is None or (axis not in reduced and _kept(op, axis, reduced) != op.axis):
        raise UnsupportedError(f"{op.kind} over these axes is not computed row by row")
    if axis not in reduced:
        return (rowwise(op.height, op.sources[0]),)
    if not others <= reduced:
        raise UnsupportedError(f"{op.kind} over these axes is not computed row by row")
    return (everything(op.height, op.sources[0]),)


def _kept(op: Seen, axis: int, reduced: set[int]) -> int | None:
    """Return the axis of the result that an axis which is not reduced becomes."""
    if op.sources[0] != op.height or not reduced:
        return None
    keep = len(op.made) == len(op.shapes[0])
    return axis if keep else axis - sum(a < axis for a in reduced)


def _multiplier(op: Reduction) -> Multiplier:
    ratio, count = op.source.scale / op.result.scale, op.count if op.kind == "MEAN" else 1
    if op.rounding == "float" or count == 1:
        return multiplier(ratio / count)
    return divided(multiplier(ratio), count)


def _compute(op: Reduction, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels.pooling import mean

    source, result = op.source, op.result
    finish = Requantise(_multiplier(op), result.zero, *op.limits, result.dtype, op.rounding)
    spec = Mean(source.shape, op.axes, op.keep, source.dtype, source.zero, finish)
    return calls.kernel("q_mean", mean(spec), values[0])


def _reference(op: Reduction, x: Array, *_axes: Array) -> Array:
    """``QuantizedMeanOrSum``."""
    total = (x.astype(np.int64) - op.source.zero).sum(op.axes, keepdims=op.keep)
    m = _multiplier(op)
    return clamped(scaled(total, m.value[0], m.shift[0]), op.result, op.limits)


def _plain(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr | None:
    """Return a 64-bit sum, truncated after the division, for integers without a scale.

    TVM's importer computes it in floats.
    """
    dtype, shape = scene.dtype(0), scene.shape(0)
    if dtype in FLOATS:
        return None
    axes = sorted({axis % len(shape) for axis in scene.constant(_AXES)})
    count = int(np.prod([shape[axis] for axis in axes]))
    wide, keep = calls.apply("astype", values[0], "int64"), bool(scene.options.u8(_KEEP))
    total = calls.apply("sum", wide, axes, keep)
    return calls.apply("astype", calls.apply("divide", total, np.asarray(count, np.int64)), dtype)


_READ = Operator(
    kinds=(),
    integers=IntegerMeaning(
        read=read_reduction, compute=_compute, reference=_reference, in_float=True
    ),
)
OPERATORS = (
    replace(
        _READ,
        kinds=("MEAN",),
        rows=Rows(needs=_by_rows, summed=True),
        numbers=PlainMeaning(form=_plain),
    ),
    replace(_READ, kinds=("SUM",)),
)
