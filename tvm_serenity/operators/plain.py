"""Code shared by the float forms of several operators."""

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.scene import LIMITS, Calls, Expr

FLOATS = ("float32", "float16", "float64")
_RELU, _TANH = 1, 4


def activated(calls: Calls, value: Expr, activation: int) -> Expr:
    """Return ``value`` after an activation, given by its number in an options table."""
    if not activation:
        return value
    if activation == _RELU:
        return calls.apply("nn.relu", value)
    if activation == _TANH:
        return calls.apply("tanh", value)
    if activation not in LIMITS:
        raise UnsupportedError(f"activation {activation} is not supported")
    return calls.apply("clip", value, *(int(end or 0) for end in LIMITS[activation]))


def nonzero(calls: Calls, value: Expr, dtype: str) -> Expr:
    """Return an integer divisor with zeros replaced by ones.

    LiteRT refuses zeros at run time; an integer division by zero would stop the processor.
    """
    one, zero = np.asarray(1, dtype), np.asarray(0, dtype)
    return calls.apply("where", calls.apply("equal", value, zero), one, value)
