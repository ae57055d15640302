"""Operators that fill, count and look for elements."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.conformance.case import Case
from tests.conformance.operators.draws import Draw, case, constant, like
from tests.conformance.writer import TYPES, Node, T


@st.composite
def _arg(draw: Any, kind: str) -> Case:
    d = Draw(draw)
    x = d.tensor(d.shape(d.number(1, 4), 6), d.one(("int8", "uint8", "float32", "int32", "bool")))
    axis = d.axis(len(x.shape))
    made = [e for i, e in enumerate(x.shape) if i != axis % len(x.shape)]
    if not made:
        x, made = like(x, (2, *x.shape)), [2]
        axis = -1
    dtype = d.one(("int32", "int64"))
    options = {"outputType": TYPES[dtype]}
    tensors = [x, constant(axis), T(tuple(made), dtype)]
    return case(kind, tensors, Node(kind, [0, 1], [2], options))


@st.composite
def _cumsum(draw: Any) -> Case:
    d = Draw(draw)
    x = d.tensor(d.shape(d.number(1, 4), 6), d.one(("float32", "int32", "int64", "int8")))
    options = {"exclusive": d.chance(), "reverse": d.chance()}
    made = d.tensor(x.shape, x.dtype, 0.15)
    tensors = [x, constant(d.axis(len(x.shape))), made]
    return case("CUMSUM", tensors, Node("CUMSUM", [0, 1], [2], options))


@st.composite
def _top(draw: Any) -> Case:
    d = Draw(draw)
    x = d.tensor(
        d.shape(d.number(1, 3), 7), d.one(("float32", "int8", "uint8", "int16", "int32", "int64"))
    )
    count = d.number(1, x.shape[-1])
    made = (*x.shape[:-1], count)
    tensors = [x, constant(count), like(x, made), T(made, "int32")]
    return case("TOPK_V2", tensors, Node("TOPK_V2", [0, 1], [2, 3]))


@st.composite
def _fill(draw: Any) -> Case:
    d = Draw(draw)
    shape, dtype = (
        d.shape(d.number(1, 3)),
        d.one(("float32", "int32", "int64", "bool", "int8", "int16")),
    )
    x = d.tensor((), dtype)
    tensors = [constant(list(shape)), x, like(x, shape)]
    return case("FILL", tensors, Node("FILL", [0, 1], [2]))


@st.composite
def _shape(draw: Any) -> Case:
    d = Draw(draw)
    x = d.tensor(d.shape(d.number(1, 4)), d.one(("float32", "int8", "int32")))
    dtype = d.one(("int32", "int64"))
    node = Node("SHAPE", [0], [1], {"outType": TYPES[dtype]})
    return case("SHAPE", [x, T((len(x.shape),), dtype)], node)


@st.composite
def _range(draw: Any) -> Case:
    d = Draw(draw)
    dtype = d.one(("int32", "float32", "int64"))
    first, count, step = d.number(-5, 5), d.number(1, 9), d.one((1, 2, 3, -1, -2))
    values = [constant(v, dtype) for v in (first, first + count * step, step)]
    return case("RANGE", [*values, T((count,), dtype)], Node("RANGE", [0, 1, 2], [3]))


_CASES = ("ARG_MAX", "ARG_MIN")
STRATEGIES: dict[str, SearchStrategy[Case]] = {
    **{kind: _arg(kind) for kind in _CASES},
    "CUMSUM": _cumsum(),
    "TOPK_V2": _top(),
    "FILL": _fill(),
    "SHAPE": _shape(),
    "RANGE": _range(),
}
