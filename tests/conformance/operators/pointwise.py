"""Operators of two or three tensors, element by element; conversions."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.conformance.case import Case
from tests.conformance.operators.draws import INTEGERS, Draw, case, constant, like
from tests.conformance.writer import Array, Node, T

ACTIVATIONS = (0, 0, 0, 1, 2, 3)
_ALL = (*INTEGERS, "float32", "int32", "int64")
_FUSED = ("ADD", "SUB", "MUL", "DIV")


def broadcast(d: Draw, most: int = 5) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return two shapes that fit each other, and that of the result: any rank, from 0."""
    rank = d.number(0, most)
    full = d.shape(rank, 4)
    if d.chance():
        return full, full, full
    cut = d.number(0, rank)
    small = tuple(1 if d.chance() else e for e in full[cut:])
    big = tuple(1 if d.number(0, 4) == 0 else e for e in full)
    made = tuple(int(e) for e in np.broadcast_shapes(small, big))
    return (small, big, made) if d.chance() else (big, small, made)


def fixed(d: Draw, x: T) -> T:
    """Return ``x``, or a constant of its type and shape."""
    if d.number(0, 2):
        return x
    return T(x.shape, x.dtype, x.scale, x.zero, d.values(x.shape, x.dtype))


@st.composite
def _binary(draw: Any, kind: str, dtypes: Sequence[str]) -> Case:
    d = Draw(draw)
    dtype = d.one(dtypes)
    first, second, made = broadcast(d)
    a, b = d.tensor(first, dtype), d.tensor(second, dtype)
    if dtype == "int16" and d.chance():  # powers of two have a way of their own
        shift = d.number(0, 3)
        a = T(first, dtype, 2.0**-12)
        b = T(second, dtype, 2.0 ** -(12 + shift))
        y = T(made, dtype, 2.0**-12)
    else:
        around = a.scale if isinstance(a.scale, float) else 1.0
        if kind == "MUL" and isinstance(b.scale, float):
            around = around * b.scale * 20
        y = d.tensor(made, dtype, around)
        if kind in ("MAXIMUM", "MINIMUM") and d.chance():
            b, y = like(a, second), like(a, made)
    options = {"fusedActivationFunction": d.one(ACTIVATIONS)} if kind in _FUSED else {}
    node = Node(kind, [0, 1], [2], options)
    if dtype in ("int32", "int64"):  # what overflows is not defined
        feeds = tuple(tuple(_small(d, t) for t in (a, b)) for _ in range(4))
        return case(kind, [a, b, y], node, feeds=feeds)
    return case(kind, [a, fixed(d, b), y], node)


def _small(d: Draw, x: T) -> Array:
    """Values whose sums and products fit into 32 bits."""
    return np.asarray(d.rng().integers(-40_000, 40_000, x.shape), x.dtype)


@st.composite
def _divided(draw: Any, kind: str, dtypes: Sequence[str]) -> Case:
    """Division, by constants other than zero."""
    d = Draw(draw)
    dtype = d.one(dtypes)
    first, second, made = broadcast(d)
    a, b = d.tensor(first, dtype), d.tensor(second, dtype)
    zero = int(np.asarray(b.zero)) if kind == "DIV" else 0
    data = _nonzero(d.values(second, dtype), zero)
    b = T(second, dtype, b.scale, b.zero, data)
    y = d.tensor(made, dtype, 1.0 if dtype != "int16" else 0.01)
    options = {"fusedActivationFunction": d.one(ACTIVATIONS)} if kind == "DIV" else {}
    return case(kind, [a, b, y], Node(kind, [0, 1], [2], options), feeds=_feeds(d, a))


def _nonzero(values: Array, zero: int) -> Array:
    replaced = np.where(values == zero, zero + 1 if zero < 100 else zero - 1, values)
    if values.dtype.kind == "i":  # the least value by -1 has no result
        replaced = np.where(replaced == -1, 3 if zero != 3 else 4, replaced)
    return np.asarray(replaced, values.dtype)


def _feeds(d: Draw, *tensors: T) -> tuple[tuple[Array, ...], ...]:
    return tuple(tuple(d.values(t.shape, t.dtype) for t in tensors) for _ in range(4))


@st.composite
def _compared(draw: Any, kind: str) -> Case:
    d = Draw(draw)
    dtype = d.one((*_ALL, "bool"))
    first, second, made = broadcast(d)
    a, b = d.tensor(first, dtype), d.tensor(second, dtype)
    if d.chance():
        b = like(a, second)
    return case(kind, [a, fixed(d, b), T(made, "bool")], Node(kind, [0, 1], [2]))


@st.composite
def _logical(draw: Any, kind: str) -> Case:
    d = Draw(draw)
    first, second, made = broadcast(d, 4)
    a, b, y = T(first, "bool"), T(second, "bool"), T(made, "bool")
    if kind == "LOGICAL_NOT":
        return case(kind, [a, T(first, "bool")], Node(kind, [0], [1]))
    return case(kind, [a, fixed(d, b), y], Node(kind, [0, 1], [2]))


@st.composite
def _selected(draw: Any, kind: str) -> Case:
    d = Draw(draw)
    dtype = d.one((*_ALL, "bool"))
    if kind == "SELECT":
        shape = d.shape(d.number(1, 4), 4)
        x = d.tensor(shape, dtype)
        condition = T(shape if d.chance() else shape[:1], "bool")
        tensors = [condition, x, fixed(d, like(x, shape)), like(x, shape)]
        return case(kind, tensors, Node(kind, [0, 1, 2], [3]))
    first, second, made = broadcast(d, 4)
    x = d.tensor(first, dtype)
    condition = T(d.one((made, second, (1,) if made else (), ())), "bool")
    tensors = [condition, x, fixed(d, like(x, second)), like(x, made)]
    return case(kind, tensors, Node(kind, [0, 1, 2], [3]))


@st.composite
def _cast(draw: Any) -> Case:
    d = Draw(draw)
    types = ("int8", "uint8", "int16", "int32", "int64", "float32", "bool")
    shape = d.shape(d.number(0, 4), 4)
    source, made = d.one(types), d.one(types)
    x = T(shape, source)
    feeds = _feeds(d, x)
    if source == "float32":  # what does not fit into the result is not defined
        span = 100.0 if made in ("int8", "uint8") else 3e4
        low = 0.0 if made == "uint8" else -span
        feeds = tuple(
            (np.asarray(d.rng().uniform(low, span, shape), np.float32),) for _ in range(4)
        )
    return case("CAST", [x, T(shape, made)], Node("CAST", [0], [1]), feeds=feeds)


@st.composite
def _quantised(draw: Any) -> Case:
    d = Draw(draw)
    made = d.one(INTEGERS)
    source = d.one(("float32", *INTEGERS, "int32"))
    shape = d.shape(d.number(0, 5), 5)
    x = d.tensor(shape, source) if source != "int32" else T(shape, "int32", d.scale(1e-9))
    y = d.tensor(shape, made, 0.001 if made == "int16" else 0.05)
    if source in INTEGERS and made in INTEGERS and d.chance():
        y = T(shape, made, x.scale, y.zero)
    return case("QUANTIZE", [x, y], Node("QUANTIZE", [0], [1]))


@st.composite
def _dequantised(draw: Any) -> Case:
    d = Draw(draw)
    shape = d.shape(d.number(0, 5), 5)
    x = d.tensor(shape, d.one(INTEGERS))
    return case("DEQUANTIZE", [x, T(shape, "float32")], Node("DEQUANTIZE", [0], [1]), tolerance=0)


@st.composite
def _fake_quantised(draw: Any) -> Case:
    d = Draw(draw)
    shape = d.shape(d.number(1, 4), 5)
    low, high = -d.scale(1.0), d.scale(1.0)
    bits = d.number(2, 16)
    options = {"min": low, "max": high, "numBits": bits, "narrowRange": False}
    tensors = [T(shape, "float32"), T(shape, "float32")]
    node = Node("FAKE_QUANT", [0], [1], options)
    return case("FAKE_QUANT", tensors, node, tolerance=1e-4)  # a step of 15 bits


@st.composite
def _added(draw: Any) -> Case:
    d = Draw(draw)
    count, dtype = d.number(2, 20 if d.chance() else 5), d.one(("float32", "int32", "int8"))
    shape = d.shape(d.number(0, 4), 4)
    x = d.tensor(shape, dtype)
    made = d.tensor(shape, dtype, 0.15)
    node = Node("ADD_N", list(range(count)), [count])
    return case("ADD_N", [x] * count + [made], node)


@st.composite
def _power(draw: Any) -> Case:
    d = Draw(draw)
    first, second, made = broadcast(d, 4)
    a, b = T(first, "float32"), T(second, "float32")
    feeds = tuple(
        (
            np.asarray(d.rng().uniform(0.1, 3, first), np.float32),
            np.asarray(d.rng().uniform(-3, 3, second), np.float32),
        )
        for _ in range(3)
    )
    node = Node("POW", [0, 1], [2])
    return case("POW", [a, b, T(made, "float32")], node, feeds=feeds)


@st.composite
def _one_hot(draw: Any) -> Case:
    d = Draw(draw)
    rank, depth = d.number(0, 3), d.number(1, 6)
    dtype = d.one(("float32", "int32", "int64", "int16", "int8", "uint8", "bool"))
    scaled = dtype in ("int16", "int8", "uint8") and d.chance()
    shape = d.shape(rank, 4)
    axis = d.number(-1, rank)
    place = rank if axis == -1 else axis
    made = (*shape[:place], depth, *shape[place:])
    on, off = (constant(v, dtype) for v in ((1, 0) if dtype in ("bool", "uint8") else (3, -2)))
    tensors = [T(shape, "int32"), constant(depth), on, off, T(made, dtype)]
    if scaled:
        tensors[2:] = [replace(t, scale=0.1, zero=0) for t in tensors[2:]]
    feeds = tuple((np.asarray(d.rng().integers(-1, depth + 1, shape), np.int32),) for _ in range(3))
    node = Node("ONE_HOT", [0, 1, 2, 3], [4], {"axis": axis})
    return case("ONE_HOT", tensors, node, feeds=feeds)


@st.composite
def _embedding(draw: Any) -> Case:
    d = Draw(draw)
    rows, dtype = d.number(1, 6), d.one(("float32", "int8"))
    shape = (rows, *d.shape(d.number(1, 3), 4))
    count = d.number(1, 4)
    table = d.tensor(shape, dtype)
    y = like(table, (count, *shape[1:]))
    if dtype == "int8" and d.chance():  # rows of floats, by one scale
        table, y = T(shape, dtype, d.scale()), T(y.shape, "float32")
    table = T(shape, dtype, table.scale, table.zero, d.values(shape, dtype))
    feeds = tuple((np.asarray(d.rng().integers(0, rows, (count,)), np.int32),) for _ in range(3))
    node = Node("EMBEDDING_LOOKUP", [0, 1], [2])
    return case("EMBEDDING_LOOKUP", [T((count,), "int32"), table, y], node, feeds=feeds)


@st.composite
def _range(draw: Any) -> Case:
    d = Draw(draw)
    dtype = d.one(("int32", "float32"))
    step, count, first = d.one((1, 2, -1, 3)), d.number(1, 7), d.number(-5, 5)
    values = [constant(v, dtype) for v in (first, first + step * count, step)]
    return case("RANGE", [*values, T((count,), dtype)], Node("RANGE", [0, 1, 2], [3]))


@st.composite
def _zeros(draw: Any) -> Case:
    d = Draw(draw)
    dtype, shape = d.one(("float32", "int32", "int64")), d.shape(d.number(0, 4), 4)
    return case("ZEROS_LIKE", [T(shape, dtype), T(shape, dtype)], Node("ZEROS_LIKE", [0], [1]))


_COMPARED = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
STRATEGIES: dict[str, SearchStrategy[Case]] = {
    **{kind: _binary(kind, _ALL) for kind in ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM")},
    "SQUARED_DIFFERENCE": _binary("SQUARED_DIFFERENCE", ("int8", "int8", "float32", "int32")),
    "DIV": _divided("DIV", (*INTEGERS, "float32", "int32")),
    "FLOOR_DIV": _divided("FLOOR_DIV", ("int8", "int16", "float32", "int32")),
    "FLOOR_MOD": _divided("FLOOR_MOD", ("int8", "int16", "float32", "int32", "int64")),
    **{kind: _compared(kind) for kind in _COMPARED},
    **{kind: _logical(kind) for kind in ("LOGICAL_AND", "LOGICAL_OR", "LOGICAL_NOT")},
    **{kind: _selected(kind) for kind in ("SELECT", "SELECT_V2")},
    "CAST": _cast(),
    "QUANTIZE": _quantised(),
    "DEQUANTIZE": _dequantised(),
    "FAKE_QUANT": _fake_quantised(),
    "ADD_N": _added(),
    "POW": _power(),
    "ONE_HOT": _one_hot(),
    "EMBEDDING_LOOKUP": _embedding(),
    "RANGE": _range(),
    "ZEROS_LIKE": _zeros(),
}
