"""Gathers of rows and columns by computed indices."""

from collections.abc import Sequence

import numpy as np

from tvm_serenity.operators.scene import Array, Calls, Expr


def picked(calls: Calls, value: Expr, order: Sequence[int] | Array, axis: int, extent: int) -> Expr:
    """Return the positions ``order`` of ``value`` along an axis.

    ``value`` itself if they are in order.
    """
    indices = np.asarray(order, np.int64)
    if np.array_equal(indices, np.arange(extent)):
        return value
    return calls.apply("take", value, indices, axis, mode="clip")
