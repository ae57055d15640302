"""Rows and columns of a tensor that are picked by a rule, by indices that are computed here."""

from collections.abc import Sequence

import numpy as np

from tvm_serenity.operators.scene import Array, Calls, Expr


def picked(calls: Calls, value: Expr, order: Sequence[int] | Array, axis: int, extent: int) -> Expr:
    """Return ``value`` with the positions ``order`` of an axis, itself where they are in order."""
    indices = np.asarray(order, np.int64)
    if np.array_equal(indices, np.arange(extent)):
        return value
    return calls.apply("take", value, indices, axis, mode="clip")
