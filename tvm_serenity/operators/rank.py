"""RANK: the number of axes of a tensor, a constant at import."""

from collections.abc import Sequence

import numpy as np

from tvm_serenity.operators.parts import IntegerMeaning, PlainMeaning
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Array, Calls, Expr, Scene


def _plain(scene: Scene, _values: Sequence[Expr], _calls: Calls) -> Array:
    return np.asarray(len(scene.shape(0)), np.int32)


OPERATORS = (
    Operator(
        kinds=("RANK",), numbers=PlainMeaning(form=_plain), integers=IntegerMeaning(moves=True)
    ),
)
