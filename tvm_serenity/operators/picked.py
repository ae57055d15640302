"""Gathers of rows and columns by indices that are known at import."""

from collections.abc import Sequence

import numpy as np

from tvm_serenity.operators.scene import Array, Calls, Expr


def picked(calls: Calls, value: Expr, order: Sequence[int] | Array, axis: int, extent: int) -> Expr:
    """Return ``value`` with the positions ``order`` along an axis.

    If these are all positions in order, return ``value`` itself.
    """
    indices = np.asarray(order, np.int64)
    if np.array_equal(indices, np.arange(extent)):
        return value
    return calls.apply("take", value, indices, axis, mode="clip")
