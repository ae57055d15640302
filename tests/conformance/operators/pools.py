"""Pools and resizes: operators over windows of an image without weights."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.conformance.case import Case
from tests.conformance.operators.draws import Draw, case, constant, like
from tests.conformance.operators.weighted import ACTIVATIONS, SAME, VALID, made, window
from tests.conformance.writer import Node


@st.composite
def _pool(draw: Any, kind: str, dtypes: tuple[str, ...]) -> Case:
    d = Draw(draw)
    padding = d.one((SAME, VALID))
    sizes, stride, _, image = window(d, padding)
    x = d.tensor((d.number(1, 2), *image, d.number(1, 5)), d.one(dtypes))
    y = like(x, (x.shape[0], *made(image, sizes, stride, (1, 1), padding), x.shape[3]))
    options = {
        "padding": padding,
        "filterHeight": sizes[0],
        "filterWidth": sizes[1],
        "strideH": stride[0],
        "strideW": stride[1],
        "fusedActivationFunction": d.one(ACTIVATIONS),
    }
    return case(kind, [x, y], Node(kind, [0], [1], options))


@st.composite
def _resize(draw: Any, kind: str, dtypes: tuple[str, ...]) -> Case:
    d = Draw(draw)
    x = d.tensor((d.number(1, 2), *d.shape(2, 7), d.number(1, 4)), d.one(dtypes))
    size = [e * d.number(1, 3) if d.chance() else d.number(1, 13) for e in x.shape[1:3]]
    y = like(x, (x.shape[0], *size, x.shape[3]))
    align, half = d.one(((False, False), (True, False), (False, True)))
    options = {"alignCorners": align, "halfPixelCenters": half}
    return case(kind, [x, constant(size), y], Node(kind, [0, 1], [2], options))


_TYPES = ("int8", "int8", "uint8", "int16", "float32")
STRATEGIES: dict[str, SearchStrategy[Case]] = {
    "AVERAGE_POOL_2D": _pool("AVERAGE_POOL_2D", _TYPES),
    "MAX_POOL_2D": _pool("MAX_POOL_2D", _TYPES),
    "L2_POOL_2D": _pool("L2_POOL_2D", ("float32",)),
    "RESIZE_BILINEAR": _resize("RESIZE_BILINEAR", _TYPES),
    "RESIZE_NEAREST_NEIGHBOR": _resize("RESIZE_NEAREST_NEIGHBOR", _TYPES),
}
