"""Convolutions and dense layers."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.conformance.case import Case
from tests.conformance.operators.draws import Draw, case
from tests.conformance.writer import Node, T

SAME, VALID = 0, 1
ACTIVATIONS = (0, 0, 1, 2, 3)
"""None, none, RELU, RELU_N1_TO_1, RELU6."""
DYNAMIC = "dynamic range"
"""Float activations with 8-bit weights."""


def weight(
    d: Draw, shape: Sequence[int], channels: int, dtype: str, *, four_bits: bool = True
) -> T:
    """Return weights for activations of ``dtype``; ``channels`` is their channel axis.

    ``four_bits``: LiteRT has the operator with weights of 4 bits.
    """
    if dtype == "float32":
        return T(tuple(shape), dtype, data=d.values(shape, dtype))
    if dtype == "uint8":
        zero = d.number(0, 255)
        return T(tuple(shape), dtype, d.scale(0.01), zero, d.values(shape, dtype))
    narrow = four_bits and dtype in ("int8", DYNAMIC) and d.number(0, 4) == 0
    # LiteRT reads past a single scale of a depthwise convolution of floats.
    held, step = ("int4", 8) if narrow else ("int8", 1)
    data = np.maximum(d.values(shape, held), -127)
    if not (dtype == DYNAMIC and channels == 3) and d.chance():
        return T(tuple(shape), held, d.scale(0.01 * step), 0, data)
    scales = d.rng().uniform(0.001 * step, 0.03 * step, shape[channels]).astype(np.float32)
    return T(tuple(shape), held, [float(s) for s in scales], 0, data, channels)


def activations(d: Draw, shape: Sequence[int], dtype: str, around: float = 0.05) -> T:
    """Return an input or a result, of floats where the range is dynamic."""
    return d.tensor(shape, "float32" if dtype == DYNAMIC else dtype, around)


def layer_case(dtype: str, kind: str, tensors: Sequence[T], node: Node) -> Case:
    """Return the case of an operator; floats must be the same where the range is dynamic."""
    made = case(kind, tensors, node)
    return replace(made, tolerance=0.0) if dtype == DYNAMIC else made


def bias(d: Draw, x: T, w: T, count: int) -> T:
    """Return a bias as the operator stores it: in steps of the product of scales."""
    if x.dtype == "float32":
        return T((count,), "float32", data=d.values((count,), "float32"))
    product = np.float32(x.scale) * np.asarray(w.scale, np.float32)  # type: ignore[arg-type]
    dtype = "int64" if x.dtype == "int16" else "int32"
    data = d.rng().integers(-3000, 3000, count).astype(dtype)
    if d.chance():
        data = data * 300
    return T((count,), dtype, product.tolist(), 0, data)


def result(d: Draw, shape: Sequence[int], x: T, w: T, terms: int) -> T:
    """Return the tensor of sums of ``terms`` products, in a scale that fits most of them."""
    if x.dtype == "float32":
        return T(tuple(shape), "float32")
    largest = float(np.max(np.asarray(w.scale, np.float32)))
    steps = 40 if x.dtype == "int16" else 60
    assert isinstance(x.scale, float)
    around = x.scale * largest * steps * np.sqrt(terms) / 2
    return d.tensor(shape, x.dtype, float(around))


@st.composite
def _convolution(draw: Any, dtypes: Sequence[str]) -> Case:
    d = Draw(draw)
    dtype, padding = d.one(dtypes), d.one((SAME, VALID))
    sizes, stride, dilation, image = window(d, padding)
    channels, filters = d.number(1, 9), d.number(1, 9)
    x = activations(d, (d.number(1, 2), *image, channels), dtype)
    w = weight(d, (filters, *sizes, channels), 0, dtype)
    extents = made(image, sizes, stride, dilation, padding)
    y = result(d, (x.shape[0], *extents, filters), x, w, sizes[0] * sizes[1] * channels)
    options = {
        **_options(stride, dilation, padding),
        "fusedActivationFunction": d.one(ACTIVATIONS),
    }
    node = Node("CONV_2D", [0, 1, 2], [3], options)
    return layer_case(dtype, "CONV_2D", [x, w, bias(d, x, w, filters), y], node)


@st.composite
def _depthwise(draw: Any, dtypes: Sequence[str]) -> Case:
    d = Draw(draw)
    dtype, padding = d.one(dtypes), d.one((SAME, VALID))
    sizes, stride, dilation, image = window(d, padding)
    channels, multiplier = d.number(1, 7), d.one((1, 1, 2, 3))
    x = activations(d, (d.number(1, 2), *image, channels), dtype)
    count = channels * multiplier
    w = weight(d, (1, *sizes, count), 3, dtype, four_bits=dtype != DYNAMIC)
    extents = made(image, sizes, stride, dilation, padding)
    y = result(d, (x.shape[0], *extents, count), x, w, sizes[0] * sizes[1])
    options = {
        **_options(stride, dilation, padding),
        "depthMultiplier": multiplier,
        "fusedActivationFunction": d.one(ACTIVATIONS),
    }
    node = Node("DEPTHWISE_CONV_2D", [0, 1, 2], [3], options)
    return layer_case(dtype, "DEPTHWISE_CONV_2D", [x, w, bias(d, x, w, count), y], node)


@st.composite
def _dense(draw: Any, dtypes: Sequence[str]) -> Case:
    d = Draw(draw)
    dtype, keep = d.one(dtypes), d.chance()
    lead, columns, units = d.shape(d.number(1, 3), 4), d.number(1, 40), d.number(1, 9)
    x = activations(d, (*lead, columns), dtype)
    w = weight(d, (units, columns), 0, dtype)
    rows = int(np.prod(lead))
    y = result(d, (*lead, units) if keep else (rows, units), x, w, columns)
    options = {"keepNumDims": keep, "fusedActivationFunction": d.one(ACTIVATIONS)}
    if dtype == DYNAMIC:
        options["asymmetricQuantizeInputs"] = d.chance()
    tensors, inputs = [x, w, bias(d, x, w, units), y], [0, 1, 2]
    if d.number(0, 3) == 0:
        inputs = [0, 1, -1] if d.chance() else [0, 1]
    return layer_case(
        dtype, "FULLY_CONNECTED", tensors, Node("FULLY_CONNECTED", inputs, [3], options)
    )


def window(d: Draw, padding: int) -> tuple[tuple[int, int], ...]:
    """Extents of the window, strides, dilations and an image the window fits into."""
    sizes = (d.number(1, 4), d.number(1, 4))
    dilation = (d.number(1, 3), d.number(1, 3)) if d.number(0, 3) == 0 else (1, 1)
    stride = (d.number(1, 3), d.number(1, 3))
    least = [
        (k - 1) * s + 1 if padding == VALID else 1 for k, s in zip(sizes, dilation, strict=True)
    ]
    image = (d.number(least[0], least[0] + 7), d.number(least[1], least[1] + 7))
    return sizes, stride, dilation, image


def made(
    image: Sequence[int],
    sizes: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    padding: int,
) -> list[int]:
    """Extents of the result, as TFLite defines both paddings."""
    reach = [(k - 1) * s for k, s in zip(sizes, dilation, strict=True)]
    if padding == SAME:
        return [-(-e // s) for e, s in zip(image, stride, strict=True)]
    return [(e - r - 1) // s + 1 for e, r, s in zip(image, reach, stride, strict=True)]


def _options(stride: Sequence[int], dilation: Sequence[int], padding: int) -> dict[str, Any]:
    return {
        "padding": padding,
        "strideH": stride[0],
        "strideW": stride[1],
        "dilationHFactor": dilation[0],
        "dilationWFactor": dilation[1],
    }


_TYPES = ("int8", "int8", "uint8", "int16", "float32", DYNAMIC)
STRATEGIES: dict[str, SearchStrategy[Case]] = {
    "CONV_2D": _convolution(_TYPES),
    "DEPTHWISE_CONV_2D": _depthwise(_TYPES),
    "FULLY_CONNECTED": _dense(_TYPES),
}
