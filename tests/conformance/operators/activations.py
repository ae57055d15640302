"""Functions of one value, and of rows; products of tensors that both vary."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.conformance.case import Case
from tests.conformance.operators.draws import INTEGERS, Draw, case, like
from tests.conformance.operators.pointwise import fixed
from tests.conformance.operators.weighted import DYNAMIC, activations, layer_case
from tests.conformance.writer import Array, Node, T

_LOW = {"int8": -128, "uint8": 0, "int16": 0}
_UNIT = {"LOGISTIC": 256, "TANH": 128, "SOFTMAX": 256, "L2_NORMALIZATION": 128, "LOG_SOFTMAX": 16}
_OFFSET = {"LOGISTIC": 0, "TANH": 128, "SOFTMAX": 0, "L2_NORMALIZATION": 128, "LOG_SOFTMAX": 255}
_POSITIVE = ("LOG", "SQRT", "RSQRT")


def every(dtype: str, least: int) -> Array:
    """Return all values of an 8-bit type, those of 16 bits in 4096 places, from ``least``."""
    limits = np.iinfo(dtype)
    step = 1 if limits.bits == 8 else 13
    return np.arange(max(int(limits.min), least), int(limits.max) + 1, step).astype(dtype)


def _result(d: Draw, kind: str, x: T, shape: Sequence[int]) -> T:
    """The result: in the steps that LiteRT insists on, or any."""
    if x.dtype not in INTEGERS:
        return like(x, shape)
    if kind in _UNIT:
        if x.dtype == "int16":
            return T(tuple(shape), "int16", 2.0**-15)
        return T(tuple(shape), x.dtype, 1 / _UNIT[kind], _LOW[x.dtype] + _OFFSET[kind])
    if d.chance():
        return like(x, shape)
    around = {"int8": 0.05, "uint8": 0.05, "int16": 0.0005}[x.dtype]
    return d.tensor(shape, x.dtype, around)


_CANCELLED = {"GELU": 4 * 2.0**-24}
"""Half a last place of ``1 + erf(x)``, times the largest ``x``: little of it is left below 0."""


@st.composite
def _function(draw: Any, /, kind: str, dtypes: Sequence[str], **options: Any) -> Case:
    """A function of one value: on all values of 8 bits, or on floats of any shape."""
    d = Draw(draw)
    dtype = d.one(dtypes)
    given = {key: d.draw(value) for key, value in options.items()}
    node = Node(kind, [0], [1], given)
    if dtype not in INTEGERS:
        shape = d.shape(d.number(0, 5), 4)
        x = T(shape, dtype)
        low = 0.01 if kind in _POSITIVE else -4.0
        feeds = tuple((np.asarray(d.rng().uniform(low, 4, shape), dtype),) for _ in range(3))
        apart = _CANCELLED.get(kind, 0.0)
        return case(kind, [x, T(shape, dtype)], node, feeds=feeds, absolute=apart)
    around = 0.05 if dtype != "int16" else 0.0003
    drawn = d.tensor((), dtype, around)
    if dtype == "int16" and kind in ("LOGISTIC", "TANH") and d.chance():
        drawn = T((), dtype, 2.0 ** -d.number(10, 13))
    zero = int(np.asarray(drawn.zero))
    values = every(dtype, zero + 1 if kind in _POSITIVE and kind != "LOG" else -(1 << 15))
    if not values.size:
        values = np.asarray([zero], dtype)
    x = like(drawn, (1, values.size))
    y = _result(d, kind, x, x.shape)
    return case(kind, [x, y], node, feeds=((values.reshape(x.shape),),))


@st.composite
def _rows(draw: Any, /, kind: str, dtypes: Sequence[str], **options: Any) -> Case:
    d = Draw(draw)
    dtype = d.one(dtypes)
    rank = d.number(1, 4)
    shape = (*d.shape(rank - 1, 3), d.number(1, 30))
    x = d.tensor(shape, dtype, 0.1 if dtype != "int16" else 0.0005)
    y = _result(d, kind, x, shape)
    if kind == "SOFTMAX" and dtype in ("int8", "uint8") and d.number(0, 4) == 0:
        y = T(shape, "int16", 1 / 65536, -32768)
    given = {key: d.draw(value) for key, value in options.items()}
    return case(kind, [x, y], Node(kind, [0], [1], given))


@st.composite
def _prelu(draw: Any) -> Case:
    d = Draw(draw)
    dtype = d.one((*INTEGERS, "float32"))
    shape = d.shape(d.number(1, 4), 5)
    cut = d.number(0, len(shape) - 1)
    slopes = tuple(1 if d.chance() else e for e in shape[cut:])
    x = d.tensor(shape, dtype, 0.05 if dtype != "int16" else 0.0005)
    alpha = d.tensor(slopes, "int8" if dtype == "int16" else dtype, 0.01)
    y = _result(d, "PRELU", x, shape)
    return case("PRELU", [x, fixed(d, alpha), y], Node("PRELU", [0, 1], [2]))


@st.composite
def _matmul(draw: Any) -> Case:
    d = Draw(draw)
    dtype = d.one(("int8", "int8", "int16", "float32", DYNAMIC))
    rows, inner, columns = d.number(1, 6), d.number(1, 20), d.number(1, 6)
    batch = d.shape(d.number(0, 3), 3)
    other = tuple(1 if d.number(0, 2) == 0 else e for e in batch[d.number(0, len(batch)) :])
    flip_x, flip_y = d.chance(), d.chance()
    left = (*batch, inner, rows) if flip_x else (*batch, rows, inner)
    right = (*other, columns, inner) if flip_y else (*other, inner, columns)
    around = 0.05 if dtype != "int16" else 0.0005
    a = activations(d, left, dtype, around)
    b = T(right, "int8", d.scale()) if dtype == DYNAMIC else d.tensor(right, dtype, around)
    scale = 0.05
    if isinstance(a.scale, float) and isinstance(b.scale, float):
        scale = a.scale * b.scale * float(np.sqrt(inner)) * (60 if dtype == "int8" else 1e4)
    y = activations(d, (*batch, rows, columns), dtype, scale)
    options = {"adjX": flip_x, "adjY": flip_y}
    b = fixed(d, b)
    if dtype == DYNAMIC and b.data is not None:  # LiteRT keeps the sums of the first run's matrices
        options["asymmetricQuantizeInputs"] = d.chance()
    return layer_case(dtype, "BATCH_MATMUL", [a, b, y], Node("BATCH_MATMUL", [0, 1], [2], options))


@st.composite
def _local_response(draw: Any) -> Case:
    d = Draw(draw)
    shape = d.shape(4, 6)
    options = {
        "radius": d.number(0, 3),
        "bias": d.scale(1.0),
        "alpha": d.scale(0.1),
        "beta": d.one((0.5, 0.75, 1.0)),
    }
    tensors = [T(shape, "float32"), T(shape, "float32")]
    kind = "LOCAL_RESPONSE_NORMALIZATION"
    return case(kind, tensors, Node(kind, [0], [1], options))


_EIGHT = ("int8", "uint8")
_WIDE = ("int8", "int8", "int16", "float32")
_ANY = ("int8", "uint8", "int16", "float32")
STRATEGIES: dict[str, SearchStrategy[Case]] = {
    "ABS": _function("ABS", (*_WIDE, "int32")),
    "NEG": _function("NEG", (*_WIDE, "int32", "int64")),
    **{kind: _function(kind, _WIDE) for kind in ("EXP", "LOG", "SQRT", "RSQRT")},
    **{kind: _function(kind, ("float32",)) for kind in ("SQUARE", "SIN", "COS", "FLOOR", "SIGN")},
    **{kind: _function(kind, _ANY) for kind in ("RELU", "RELU6", "LOGISTIC", "TANH")},
    **{kind: _function(kind, (*_EIGHT, "float32")) for kind in ("RELU_N1_TO_1", "RELU_0_TO_1")},
    "HARD_SWISH": _function("HARD_SWISH", (*_EIGHT, "float32")),
    "LEAKY_RELU": _function("LEAKY_RELU", _ANY, alpha=st.floats(-0.5, 1.5, width=32)),
    "GELU": _function("GELU", _ANY, approximate=st.booleans()),
    "SOFTMAX": _rows("SOFTMAX", _ANY, beta=st.sampled_from([1.0, 1.0, 0.5, 2.0, 10.0])),
    "LOG_SOFTMAX": _rows("LOG_SOFTMAX", (*_EIGHT, "float32")),
    "L2_NORMALIZATION": _rows("L2_NORMALIZATION", (*_EIGHT, "float32")),
    "PRELU": _prelu(),
    "BATCH_MATMUL": _matmul(),
    "LOCAL_RESPONSE_NORMALIZATION": _local_response(),
}
