"""MIRROR_PAD: a tensor with a mirrored border, with or without its outermost elements."""

from collections.abc import Sequence

import numpy as np

from tvm_serenity.operators.parts import IntegerMeaning, PlainMeaning
from tvm_serenity.operators.picked import picked
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Calls, Expr, Scene

_AMOUNTS = 1
_MODE, _SYMMETRIC = 0, 1


def _plain(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    twice = int(scene.options.u8(_MODE) == _SYMMETRIC)
    value, amounts = values[0], iter(scene.constant(_AMOUNTS))
    for axis, extent in enumerate(scene.shape(0)):
        before, after = next(amounts), next(amounts)
        first = np.arange(before - twice, -twice, -1)
        last = extent - 2 + twice - np.arange(after)
        order = np.concatenate([first, np.arange(extent), last])
        value = picked(calls, value, order, axis, extent)
    return value


OPERATORS = (
    Operator(
        kinds=("MIRROR_PAD",),
        numbers=PlainMeaning(form=_plain),
        integers=IntegerMeaning(moves=True),
    ),
)
