"""Transposed convolutions."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.conformance.case import Case
from tests.conformance.operators.draws import Draw, constant
from tests.conformance.operators.weighted import (
    ACTIVATIONS,
    DYNAMIC,
    SAME,
    VALID,
    activations,
    bias,
    layer_case,
    result,
    weight,
)
from tests.conformance.writer import Node

_TYPES = ("int8", "int8", "uint8", "int16", "float32", DYNAMIC)


@st.composite
def _transposed(draw: Any) -> Case:
    """Sizes of the result that the stride allows, also past what the filter reaches."""
    d = Draw(draw)
    dtype, padding = d.one(_TYPES), d.one((SAME, VALID))
    n, height, width, depth = d.number(1, 2), d.number(1, 5), d.number(1, 5), d.number(1, 4)
    window, stride = [d.number(1, 4) for _ in range(2)], [d.number(1, 3) for _ in range(2)]
    made = []
    for extent, size, step in zip((height, width), window, stride, strict=True):
        rest = d.number(0, step - 1)
        made.append(extent * step - rest if padding == SAME else (extent - 1) * step + size + rest)
    channels = d.number(1, 4)
    x = activations(d, (n, height, width, depth), dtype)
    w = weight(d, (channels, *window, depth), 0, dtype, four_bits=False)
    y = result(d, (n, *made, channels), x, w, window[0] * window[1] * depth)
    tensors, inputs = [constant(y.shape), w, x, y], [0, 1, 2]
    if d.chance():
        tensors.append(bias(d, x, w, channels))
        inputs.append(4)
    options = {
        "padding": padding,
        "strideH": stride[0],
        "strideW": stride[1],
        "fusedActivationFunction": d.one(ACTIVATIONS),
    }
    return layer_case(
        dtype, "TRANSPOSE_CONV", tensors, Node("TRANSPOSE_CONV", inputs, [3], options)
    )


STRATEGIES: dict[str, SearchStrategy[Case]] = {"TRANSPOSE_CONV": _transposed()}
