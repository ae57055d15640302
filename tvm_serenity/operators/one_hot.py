"""ONE_HOT: one value at each index, another value elsewhere."""

from collections.abc import Sequence

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.parts import IntegerMeaning, PlainMeaning
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Calls, Expr, Scene

_INDICES, _DEPTH, _ON, _OFF = range(4)
_AXIS = 0


def _plain(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    """Return the stored values unchanged, because LiteRT ignores their scales."""
    depth, rank = scene.constant(_DEPTH)[0], len(scene.shape(_INDICES)) + 1
    axis = scene.options.i32(_AXIS)
    if depth < 0 or not -1 <= axis < rank:
        raise UnsupportedError(
            f"ONE_HOT with depth {depth} along axis {axis} of {rank} axes is not supported"
        )
    axis %= rank
    places = np.arange(depth, dtype=scene.dtype(_INDICES))
    places = places.reshape([depth if i == axis else 1 for i in range(rank)])
    here = calls.apply("equal", calls.apply("expand_dims", values[_INDICES], axis), places)
    on, off = (calls.apply("reshape", values[i], [1] * rank) for i in (_ON, _OFF))
    return calls.apply("where", here, on, off)


OPERATORS = (
    Operator(
        kinds=("ONE_HOT",),
        relax=("one_hot",),
        numbers=PlainMeaning(form=_plain),
        integers=IntegerMeaning(moves=True),
    ),
)
