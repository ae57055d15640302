"""The operators of random Relax graphs that compute each element of what they read."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tvm import relax

from tests.conformance.relax_graphs import MOST_INTEGER, Growing, Value

op = relax.op
nn = relax.op.nn

FLOAT = "float32"


def unary(g: Growing) -> bool:
    """A function of each element."""
    x = g.find(lambda v: v.dtype in (FLOAT, "int32"))
    if x is None:
        return False
    if not x.is_float:
        kind = g.one([op.abs, op.negative, nn.relu])
        return g.emit(kind(x.var), x.bound) is not None
    kinds = [
        nn.relu,
        op.tanh,
        op.sigmoid,
        op.exp,
        op.abs,
        op.negative,
        nn.leakyrelu,
        nn.silu,
        op.round,
        op.floor,
        op.sqrt,
        op.square,
        op.erf,
        op.cos,
        nn.gelu,
    ]
    return g.emit(g.one(kinds)(x.var), min(x.bound * x.bound, 1 << 20)) is not None


def clip(g: Growing) -> bool:
    """Limits of each element."""
    x = g.find(lambda v: v.dtype in (FLOAT, "int32"))
    if x is None:
        return False
    low, high = g.one([(0, 6), (-1, 1), (-128, 127)])
    return g.emit(op.clip(x.var, low, high), min(x.bound, max(-low, high))) is not None


def binary(g: Growing) -> bool:
    """Arithmetic of two values, of a value and a weight that is broadcast, or a number."""
    x = g.find(lambda v: v.dtype in (FLOAT, "int32"))
    if x is None:
        return False
    y = _partner(g, x)
    kinds: list[tuple[Callable[..., Any], int]] = [
        (op.maximum, max(x.bound, y.bound)),
        (op.minimum, max(x.bound, y.bound)),
        (op.add, x.bound + y.bound),
        (op.subtract, x.bound + y.bound),
        (op.multiply, x.bound * y.bound),
    ]
    kind, bound = g.one([k for k in kinds if x.is_float or k[1] < MOST_INTEGER])
    pair = (x.var, y.var) if g.chance(0.5) else (y.var, x.var)
    return g.emit(kind(*pair), bound) is not None


def _partner(g: Growing, x: Value) -> Value:
    """A value that broadcasts with ``x``, or a weight of a part of its axes."""
    if g.chance(0.6):
        found = g.find(lambda v: v.dtype == x.dtype and _broadcast(v.shape, x.shape))
        if found is not None:
            return found
    kept = x.shape[g.between(0, len(x.shape)) :]
    shape = [1 if g.chance(0.3) else extent for extent in kept]
    return g.weight(shape, x.dtype, 2 if x.is_float else 100)


def _broadcast(left: Sequence[int], right: Sequence[int]) -> bool:
    try:
        np.broadcast_shapes(tuple(left), tuple(right))
    except ValueError:
        return False
    return True


def compare(g: Growing) -> bool:
    """The larger of two values by a comparison and a choice."""
    x = g.find(lambda v: v.dtype in (FLOAT, "int32", "int8"))
    if x is None:
        return False
    y = _partner(g, x) if x.dtype != "int8" else x
    test = g.one([op.greater, op.less_equal, op.equal])(x.var, y.var)
    return g.emit(op.where(test, x.var, y.var), max(x.bound, y.bound)) is not None


def cast(g: Growing) -> bool:
    """Values as another type that holds them all."""
    x = g.find(lambda v: v.dtype in (FLOAT, "int32", "int8", "uint8", "int64"))
    if x is None:
        return False
    if x.dtype in ("int8", "uint8", "int64"):
        if x.dtype == "int64" and x.bound >= MOST_INTEGER:
            return g.emit(op.astype(x.var, FLOAT), x.bound) is not None
        return g.emit(op.astype(x.var, g.one(["int32", FLOAT])), x.bound) is not None
    to = g.one(["int8", "uint8"]) if x.dtype == "int32" or g.chance(0.5) else "int32"
    low, high = {"int8": (-128, 127), "uint8": (0, 255), "int32": (-1000, 1000)}[to]
    expr = op.clip(x.var, low, high)
    expr = op.astype(op.round(expr) if x.is_float else expr, to)
    return g.emit(expr, max(-low, high)) is not None


def requantise(g: Growing) -> bool:
    """Sums of 32 bits as 8-bit values again."""
    x = g.find(lambda v: v.dtype == "int32" and v.bound > 255)
    if x is None:
        return False
    shift = max(x.bound.bit_length() - 8, 0)
    shifted = op.right_shift(x.var, relax.const(shift, "int32"))
    to = g.one(["int8", "int8", "uint8"])
    low, high = (-128, 127) if to == "int8" else (0, 255)
    return g.emit(op.astype(op.clip(shifted, low, high), to), max(-low, high)) is not None
