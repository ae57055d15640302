"""REDUCE_MAX and REDUCE_MIN: the largest or smallest stored value along axes."""

from collections.abc import Sequence

import numpy as np

from tvm_serenity.operators.parts import IntegerMeaning
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.reductions import Reduction, read_reduction
from tvm_serenity.operators.scene import Array, Calls, Expr, Scene


def _read(scene: Scene) -> Reduction:
    found = read_reduction(scene)
    scene.unscaled(found.source, found.result)
    return found


def _compute(op: Reduction, values: Sequence[Expr], calls: Calls) -> Expr:
    name = "max" if op.kind == "REDUCE_MAX" else "min"
    return calls.apply(name, values[0], list(op.axes), op.keep)


def _reference(op: Reduction, x: Array, *_axes: Array) -> Array:
    reduce = np.max if op.kind == "REDUCE_MAX" else np.min
    return np.asarray(reduce(x, axis=op.axes, keepdims=op.keep))


OPERATORS = (
    Operator(
        kinds=("REDUCE_MAX", "REDUCE_MIN"),
        integers=IntegerMeaning(read=_read, compute=_compute, reference=_reference, in_float=True),
    ),
)
