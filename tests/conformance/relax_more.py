"""More operators of random Relax graphs, in all types."""

import numpy as np
from tvm import relax

from tests.conformance.relax_graphs import MOST_INTEGER, Growing, Operators, Value
from tests.conformance.relax_operators import OPERATORS

op = relax.op
nn = relax.op.nn

FLOATS = ("float32", "float16", "float64")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32")
TYPES = (*FLOATS, *SIGNED, *UNSIGNED, "bool")


def _ranked(g: Growing, *types: str, rank: int = 1) -> Value | None:
    return g.find(lambda v: len(v.shape) >= rank and (not types or v.dtype in types))


def tile(g: Growing) -> bool:
    """A tensor several times along several axes, as it is or after a function of its elements."""
    x = _ranked(g, *FLOATS, *SIGNED)
    if x is None:
        return False
    value = nn.relu(x.var) if g.chance(0.5) else x.var
    made = op.tile(value, [g.one([1, 1, 2, 3, 4]) for _ in x.shape])
    return g.emit(made, x.bound) is not None


def twice(g: Growing) -> bool:
    """A tensor beside itself."""
    x = _ranked(g)
    if x is None:
        return False
    axis = g.between(0, len(x.shape) - 1)
    return g.emit(op.concat([x.var] * g.between(2, 3), axis), x.bound) is not None


def turned(g: Growing) -> bool:
    """Another shape of a tensor, backwards along an axis of it."""
    x = _ranked(g)
    if x is None:
        return False
    shape = _factors(g, x.elements)
    flipped = op.flip(op.reshape(x.var, shape), g.between(0, len(shape) - 1))
    return g.emit(flipped, x.bound) is not None


def flipped_twice(g: Growing) -> bool:
    """A tensor backwards along two axes."""
    x = _ranked(g, rank=2)
    if x is None:
        return False
    first = g.between(0, len(x.shape) - 1)
    made = op.flip(op.flip(x.var, first), (first + 1) % len(x.shape))
    return g.emit(made, x.bound) is not None


def _factors(g: Growing, elements: int) -> list[int]:
    """A shape of so many elements."""
    shape, left = [], elements
    for _ in range(g.between(0, 3)):
        factor = g.one([f for f in range(1, left + 1) if left % f == 0][:6])
        shape.append(factor)
        left //= factor
    shape.insert(g.between(0, len(shape)), left)
    return shape


def reversed_slice(g: Growing) -> bool:
    """Every so many elements of an axis, from its end."""
    x = _ranked(g)
    if x is None:
        return False
    axis, step = g.between(0, len(x.shape) - 1), g.between(1, 3)
    end = -x.shape[axis] - 1
    made = op.strided_slice(x.var, [axis], [x.shape[axis] - 1], [end], [-step])
    return g.emit(made, x.bound) is not None


def gathered(g: Growing) -> bool:
    """Elements by their places, which are constants."""
    x = _ranked(g)
    if x is None:
        return False
    axis = g.between(0, len(x.shape) - 1)
    places = np.random.default_rng(g.between(0, 1 << 30))
    if g.chance(0.5):
        at = places.integers(0, x.shape[axis], g.between(1, 5))
        return g.emit(op.take(x.var, relax.const(at, "int64"), axis), x.bound) is not None
    shape = [*x.shape]
    shape[axis] = g.between(1, 4)
    at = places.integers(0, x.shape[axis], shape)
    return g.emit(op.gather_elements(x.var, relax.const(at, "int64"), axis), x.bound) is not None


def reshaped(g: Growing) -> bool:
    """Axes of one element more or fewer, or a tensor that is broadcast."""
    x = _ranked(g)
    if x is None:
        return False
    kind = g.between(0, 3)
    if kind == 0:
        made = op.expand_dims(x.var, g.between(0, len(x.shape)))
    elif kind == 1:
        made = op.squeeze(x.var) if 1 in x.shape else op.flatten(x.var)
    elif kind == 2:
        shape = [e if e > 1 else g.between(1, 4) for e in x.shape]
        made = op.broadcast_to(x.var, [g.between(1, 3), *shape])
    else:
        made = op.stack([x.var, x.var], g.between(0, len(x.shape)))
    return g.emit(made, x.bound) is not None


def scan(g: Growing) -> bool:
    """Sums or products up to each element."""
    x = _ranked(g, "float32", "float64", "int32", "int64")
    if x is None or (x.bound * max(x.shape) >= MOST_INTEGER and x.dtype in SIGNED):
        return False
    made = op.cumsum(x.var, g.between(0, len(x.shape) - 1), exclusive=g.chance(0.3))
    return g.emit(made, x.bound * max(x.shape)) is not None


def triangle(g: Growing) -> bool:
    """The elements above or below a diagonal."""
    x = _ranked(g, *FLOATS, *SIGNED, rank=2)
    if x is None:
        return False
    kind = g.one([op.tril, op.triu])
    return g.emit(kind(x.var, g.between(-2, 2)), x.bound) is not None


def bits(g: Growing) -> bool:
    """Integers bit by bit, or truth values."""
    x = _ranked(g, "int32", "int64", "uint8", "bool", "int8")
    if x is None:
        return False
    y = g.find(lambda v: v.dtype == x.dtype and v.shape == x.shape) or x
    if x.dtype == "bool":
        kind = g.one([op.logical_and, op.logical_or, op.logical_xor])
        made = kind(x.var, y.var) if g.chance(0.8) else op.logical_not(x.var)
        return g.emit(made, 1) is not None
    kind = g.one([op.bitwise_and, op.bitwise_or, op.bitwise_xor])
    made = kind(x.var, y.var) if g.chance(0.8) else op.bitwise_not(x.var)
    most = 2 * max(x.bound, y.bound) + 1
    return most < MOST_INTEGER and g.emit(made, most) is not None


def divided(g: Growing) -> bool:
    """Quotients and remainders by a number other than 0."""
    x = _ranked(g, "int32", "int64", "float32")
    if x is None:
        return False
    by = relax.const(g.one([1, 2, 3, 7, 8]), x.dtype)
    if x.dtype == "float32":
        return g.emit(op.divide(x.var, by), x.bound) is not None
    kind = g.one([op.floor_divide, op.floor_mod, op.mod])
    return g.emit(kind(x.var, by), max(x.bound, 8)) is not None


def compared(g: Growing) -> bool:
    """Truth values of two tensors, or a choice by them."""
    x = _ranked(g, *FLOATS, *SIGNED, *UNSIGNED)
    if x is None:
        return False
    y = g.find(lambda v: v.dtype == x.dtype and v.shape == x.shape) or x
    kind = g.one([op.greater, op.greater_equal, op.less, op.not_equal, op.equal])
    test = kind(x.var, y.var)
    made = test if g.chance(0.5) else op.where(test, y.var, x.var)
    return g.emit(made, 1 if made is test else max(x.bound, y.bound)) is not None


def elementwise(g: Growing) -> bool:
    """A function of each element that is exact in every type."""
    x = _ranked(g, *FLOATS)
    if x is None:
        return False
    kinds = [
        op.ceil,
        op.trunc,
        op.sign,
        op.abs,
        op.negative,
        op.square,
        op.floor,
        nn.relu,
        nn.relu6,
    ]
    made = g.one(kinds)(x.var)
    return x.bound < 1000 and g.emit(made, max(6, x.bound * x.bound)) is not None


def arithmetic(g: Growing) -> bool:
    """Sums, differences, products and extremes of two tensors of any type."""
    x = _ranked(g, *FLOATS, *SIGNED)
    if x is None or (x.dtype in ("int8", "int16") and x.bound > 100):
        return False
    y = g.find(lambda v: v.dtype == x.dtype and v.shape == x.shape) or x
    kind, bound = g.one(
        [
            (op.add, x.bound + y.bound),
            (op.subtract, x.bound + y.bound),
            (op.maximum, max(x.bound, y.bound)),
            (op.minimum, max(x.bound, y.bound)),
        ]
    )
    most = {"int8": 127, "int16": 30_000}.get(x.dtype, MOST_INTEGER)
    return bound < most and g.emit(kind(x.var, y.var), bound) is not None


def converted(g: Growing) -> bool:
    """The same numbers in a type that holds them."""
    x = _ranked(g)
    if x is None:
        return False
    holds = {"float16": 2000, "int16": 30_000, "uint16": 60_000, "uint32": 1 << 30}
    to = g.one([t for t in TYPES if t not in ("int8", "uint8", "bool")])
    if x.bound > holds.get(to, MOST_INTEGER):
        return False
    value = op.abs(x.var) if to in UNSIGNED and x.dtype not in (*UNSIGNED, "bool") else x.var
    value = op.trunc(value) if x.dtype in FLOATS and to not in FLOATS else value
    return g.emit(op.astype(value, to), x.bound) is not None


def reduced(g: Growing) -> bool:
    """A sum, product or extreme along some axes."""
    x = _ranked(g, *FLOATS, "int32", "int64")
    if x is None:
        return False
    axes = [i for i in range(len(x.shape)) if g.chance(0.5)] or [0]
    kind, grows = g.one([(op.sum, True), (op.max, False), (op.min, False), (op.mean, False)])
    if x.dtype not in FLOATS and (kind is op.mean or x.bound * x.elements >= MOST_INTEGER):
        return False
    bound = x.bound * x.elements if grows else x.bound
    return g.emit(kind(x.var, axes, keepdims=g.chance(0.5)), bound) is not None


def normalised(g: Growing) -> bool:
    """A normalisation along an axis, with its factors."""
    x = _ranked(g, "float32", rank=2)
    if x is None:
        return False
    last = x.shape[-1]
    one, two = (g.weight((last,), "float32", 2).var for _ in range(2))
    if g.chance(0.5):
        return g.emit(nn.layer_norm(x.var, one, two, axes=[-1]), 4 * last) is not None
    return g.emit(nn.rms_norm(x.var, one, axes=[-1]), 4 * last) is not None


def windows(g: Growing) -> bool:
    """A convolution along one axis, a transposed one, or an adaptive pool."""
    x = g.find(lambda v: v.dtype == "float32" and len(v.shape) in (3, 4))
    if x is None:
        return False
    channels, made = x.shape[1], g.between(1, 4)
    if len(x.shape) == 3:
        size = g.between(1, min(3, x.shape[2]))
        w = g.weight((made, channels, size), "float32", 1)
        return g.emit(nn.conv1d(x.var, w.var), x.bound * channels * size) is not None
    if g.chance(0.4):
        most = (g.between(1, x.shape[2]), g.between(1, x.shape[3]))
        return g.emit(nn.adaptive_avg_pool2d(x.var, most), x.bound) is not None
    w = g.weight((channels, made, 2, 3), "float32", 1)
    result = nn.conv2d_transpose(x.var, w.var, strides=g.one([(1, 1), (2, 2), (2, 1)]))
    return g.emit(result, x.bound * channels * 6) is not None


def places(g: Growing) -> bool:
    """Ones at the places that integers name."""
    x = _ranked(g, "int32", "int64")
    if x is None:
        return False
    depth = g.between(2, 8)
    at = op.floor_mod(x.var, relax.const(depth, x.dtype))
    at = op.astype(at, "int64")
    one, zero = relax.prim_value(1), relax.prim_value(0)
    return g.emit(op.one_hot(at, one, zero, depth), 1) is not None


MORE: Operators = (
    *(tile, tile, twice, turned, turned, flipped_twice, reversed_slice, gathered, reshaped),
    *(scan, triangle, bits, divided, compared, elementwise, arithmetic, converted, converted),
    *(reduced, normalised, windows, places),
)
ALL: Operators = (*OPERATORS, *MORE)
"""Each adds one operator to a graph."""
