"""RANGE: evenly spaced numbers, computed at import."""

from collections.abc import Sequence

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.parts import PlainMeaning
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Array, Calls, Expr, Scene


def _plain(scene: Scene, _values: Sequence[Expr], _calls: Calls) -> Array:
    given = [None if operand is None else operand.values for operand in scene.operands]
    if any(values is None for values in given):
        raise UnsupportedError("its limits are computed at run time; use constants")
    first, limit, step = (np.asarray(values).reshape(())[()] for values in given)
    count = max(int(np.ceil(np.abs((limit - first) / step))), 0)
    return np.asarray(first + np.arange(count, dtype=first.dtype) * step, first.dtype)


OPERATORS = (Operator(kinds=("RANGE",), numbers=PlainMeaning(form=_plain)),)
