"""ARG_MAX and ARG_MIN: the index of the largest or smallest value along an axis."""

from collections.abc import Sequence

import numpy as np

from tvm_serenity.operators.parts import IntegerMeaning, PlainMeaning
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Calls, Expr, Scene

_AXIS = 1


def _plain(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    """Return the index of the first occurrence of the extreme.

    TVM's operator returns -1 if all values are the minimum of their type.
    """
    shape = scene.shape(0)
    value = calls.apply("astype", values[0], "int8") if scene.dtype(0) == "bool" else values[0]
    at = scene.constant(_AXIS)[0] % len(shape)
    extreme = calls.apply("max" if scene.kind == "ARG_MAX" else "min", value, at, True)
    dtype = scene.results[0].dtype
    along = [shape[at] if i == at else 1 for i in range(len(shape))]
    places = np.arange(shape[at], dtype=dtype).reshape(along)
    beyond = np.asarray(shape[at], dtype)
    found = calls.apply("where", calls.apply("equal", value, extreme), places, beyond)
    return calls.apply("min", found, at)


OPERATORS = (
    Operator(
        kinds=("ARG_MAX", "ARG_MIN"),
        numbers=PlainMeaning(form=_plain),
        integers=IntegerMeaning(moves=True),
    ),
)
