"""Functions of one value that round, and operators on shapes and parts of tensors."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.conformance.case import Case
from tests.conformance.operators.draws import Draw, case, constant, like
from tests.conformance.writer import Array, Node, T


@st.composite
def _unary(draw: Any, kind: str, dtypes: tuple[str, ...]) -> Case:
    d = Draw(draw)
    shape, dtype = d.shape(d.number(1, 4), 5), d.one(dtypes)
    x = d.tensor(shape, dtype)
    feeds: tuple[tuple[Array, ...], ...] = ()
    if dtype == "float32" and kind != "ELU":  # halves too
        halves = np.asarray(d.rng().integers(-9, 10, shape), np.float32) / 2
        feeds = ((halves,), (d.values(shape, dtype),))
    return case(kind, [x, d.tensor(shape, dtype)], Node(kind, [0], [1]), feeds=feeds)


@st.composite
def _broadcast(draw: Any) -> Case:
    d = Draw(draw)
    shape = d.shape(d.number(1, 4), 4)
    other = [1 if d.chance() else e for e in shape[d.number(0, len(shape) - 1) :]]
    first = [
        1 if d.chance() and e > 1 and i < len(shape) - len(other) else e
        for i, e in enumerate(shape)
    ]
    pair = [constant(first), constant(other)]
    if d.chance():
        pair.reverse()
    node = Node("BROADCAST_ARGS", [0, 1], [2])
    return case("BROADCAST_ARGS", [*pair, T((len(shape),), "int32")], node)


@st.composite
def _update(draw: Any) -> Case:
    """Places within the tensor, and outside of it."""
    d = Draw(draw)
    dtype = d.one(("float32", "int8", "int32", "int64", "bool"))
    x = d.tensor(d.shape(d.number(1, 4), 6), dtype)
    part = like(x, [d.number(1, e) for e in x.shape])
    index = d.one(("int32", "int64"))
    begin = np.asarray([d.number(-2, e + 1) for e in x.shape], index)
    held = d.chance()
    place = constant(begin, index) if held else T(begin.shape, index)
    given = [d.values(t.shape, dtype) for t in (x, part)]
    feeds = ((*given, *([] if held else [begin])),)
    node = Node("DYNAMIC_UPDATE_SLICE", [0, 1, 2], [3])
    tensors = [x, part, place, like(x, x.shape)]
    return case("DYNAMIC_UPDATE_SLICE", tensors, node, feeds=feeds)


@st.composite
def _rank(draw: Any) -> Case:
    d = Draw(draw)
    x = d.tensor(d.shape(d.number(1, 4), 4), d.one(("float32", "int8", "int32")))
    return case("RANK", [x, T((), "int32")], Node("RANK", [0], [1]))


STRATEGIES: dict[str, SearchStrategy[Case]] = {
    "ELU": _unary("ELU", ("float32", "int8")),
    "CEIL": _unary("CEIL", ("float32",)),
    "ROUND": _unary("ROUND", ("float32",)),
    "BROADCAST_ARGS": _broadcast(),
    "DYNAMIC_UPDATE_SLICE": _update(),
    "RANK": _rank(),
}
