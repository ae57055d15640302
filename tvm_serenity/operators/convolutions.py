"""Convolutions of images: the code that CONV_2D and DEPTHWISE_CONV_2D share.

The bias absorbs the input's zero point. Padding reads the zero point, so that a PAD by the zero
point becomes part of the convolution. If only convolutions read a concatenation, each reads its
pieces; a depthwise convolution of pieces returns pieces.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.kernels.records import Convolution, WindowSums
from tvm_serenity.operators.needs import SAME, Need, Seen, filter_rows, windowed
from tvm_serenity.operators.scene import Array, Calls, Expr, Scene, four
from tvm_serenity.operators.weighted import (
    WeightedLayer,
    filters_of,
    layer_of,
    requantised,
    summable,
)
from tvm_serenity.operators.windows import padding_around

SOURCE, WEIGHTS, BIAS = range(3)
_PADDING, _STRIDE_W, _STRIDE_H = range(3)


@dataclass(frozen=True)
class Fields:
    """The option fields of activation and dilations, and the channel axis of the weights."""

    activation: int
    dilation_w: int
    dilation_h: int
    channels: int


@dataclass(frozen=True)
class Taps:
    """The positions of a convolution's taps; ``padding`` is top, left, bottom, right."""

    layout: str
    strides: tuple[int, int]
    padding: tuple[int, int, int, int]
    dilation: tuple[int, int]
    groups: int


@dataclass(frozen=True, eq=False)
class Weighted:
    """A convolution with its constants.

    ``filters``: [height, width, input channels of a group, channels], or [height, width, channels]
    if it is depthwise. ``bias`` includes the zero point.
    """

    spec: Convolution
    filters: Array
    bias: npt.NDArray[np.int32]


def by_rows(op: Seen, fields: Fields) -> tuple[Need, ...]:
    """Return the rows that a convolution needs."""
    options = op.options
    down, across = (options.i32(f, 1) for f in (fields.dilation_h, fields.dilation_w))
    return windowed(op, filter_rows(op, WEIGHTS), op.along(down, across))


def read(scene: Scene, fields: Fields) -> Weighted | None:
    """Return the convolution of an operator; None for floats with quantised weights."""
    if scene.is_float(SOURCE):
        return None
    source, result = scene.stored(SOURCE), scene.result()
    summable(scene.kind, source, result)
    scene.symmetric(source, result)
    found = filters_of(scene, WEIGHTS, fields.channels)
    data, taps = taps_of(scene, fields, found.data)
    layer = layer_of(scene, source, replace(found, data=data), (BIAS, fields.activation))
    return convolution_of(layer, taps)


def taps_of(scene: Scene, fields: Fields, weights: Array) -> tuple[Array, Taps]:
    """Return the weights with output channels last, and the positions of their taps."""
    shape, made = four(scene.shape(SOURCE)), four(scene.results[0].shape)
    data, groups = _arranged(weights, fields.channels, shape[3])
    options = scene.options
    strides = (options.i32(_STRIDE_H), options.i32(_STRIDE_W))
    dilation = (options.i32(fields.dilation_h, 1), options.i32(fields.dilation_w, 1))
    if min(*strides, *dilation) < 1:
        raise UnsupportedError(f"its strides {strides} and dilations {dilation} must be at least 1")
    same = options.u8(_PADDING) == SAME
    reach = [(size - 1) * step + 1 for size, step in zip(data.shape[:2], dilation, strict=True)]
    top, bottom = padding_around(shape[1], made[1], reach[0], strides[0], same)
    left, right = padding_around(shape[2], made[2], reach[1], strides[1], same)
    return data, Taps("NHWC", strides, (top, left, bottom, right), dilation, groups)


def _arranged(data: Array, channels: int, depth: int) -> tuple[Array, int]:
    """Return weights with output channels last, and the number of groups.

    Each group reads ``depth`` channels.
    """
    if data.ndim != 4:
        raise UnsupportedError(f"its weights have shape {list(data.shape)}; expected four axes")
    if channels == 3:  # depthwise: one filter per output channel
        if data.shape[0] != 1 or data.shape[3] % depth:
            raise UnsupportedError(
                f"its weights of shape {list(data.shape)} do not fit an input of {depth} channels"
            )
        return np.transpose(data, (1, 2, 0, 3)), depth
    groups = depth // max(data.shape[3], 1)
    if groups * data.shape[3] != depth or data.shape[0] % max(groups, 1):
        raise UnsupportedError(
            f"its weights of shape {list(data.shape)} do not fit an input of {depth} channels"
        )
    return np.transpose(data, (1, 2, 3, 0)), groups


def convolution_of(layer: WeightedLayer, taps: Taps) -> Weighted:
    """Return the convolution of a layer with filters [height, width, channels in, channels out].

    It is depthwise if each group has one channel.
    """
    shape = four(layer.source.shape)
    data = depthwise(layer.filters.data, taps, shape)
    spec = Convolution(
        layout=taps.layout,
        pieces=(shape,),
        dtype=layer.source.dtype,
        weight_shape=data.shape,
        weight_dtype=str(data.dtype),
        strides=taps.strides,
        padding=taps.padding,
        dilation=taps.dilation,
        groups=taps.groups,
        input_zero=layer.source.zero,
        weight_zero=layer.filters.zero,
        requantise=layer.finish(layer.multipliers(layer.source.dtype == "uint8")),
    )
    return Weighted(spec, data, layer.folded_bias())


def depthwise(data: Array, taps: Taps, shape: tuple[int, int, int, int]) -> Array:
    """Return the filters for an image of ``shape``.

    They have three axes if each group has one channel.
    """
    if 1 < taps.groups == shape[taps.layout.index("C")] and data.shape[2] == 1:
        data = data[:, :, 0, :]
    return np.ascontiguousarray(data)


def compute(op: Weighted, values: Sequence[Expr], calls: Calls) -> Expr:
    """Return the call of a convolution, or the concatenation of the calls on its pieces."""
    from tvm_serenity.kernels.convolution import convolution

    spec, pieces = op.spec, [values[SOURCE]]
    inner = calls.within_border(values[SOURCE], spec.input_zero, spec.layout)
    if inner is not None:
        (expr, shape, amounts) = inner
        pieces = [expr]
        top, left, bottom, right = (a + b for a, b in zip(spec.padding, amounts, strict=True))
        spec = replace(spec, pieces=(four(shape),), padding=(top, left, bottom, right))
    elif spec.groups in (1, spec.pieces[0][spec.channel_axis]):
        joined = calls.pieces(SOURCE, spec.channel_axis)
        if joined is not None:
            pieces = [expr for expr, _ in joined]
            spec = replace(spec, pieces=tuple(four(shape) for _, shape in joined))
    if not spec.depthwise or len(pieces) == 1:
        constants = (op.filters, op.bias, *spec.requantise.arrays())
        name = "q_depthwise" if spec.depthwise else "q_conv"
        return calls.kernel(name, convolution(spec), *pieces, *constants)
    made = []
    for index, piece in enumerate(pieces):
        alone, part = spec.of_piece(index)
        some = np.ascontiguousarray(op.filters[..., part])
        constants = (some, op.bias[part], *alone.requantise.arrays())
        made.append(calls.kernel("q_depthwise", convolution(alone), piece, *constants))
    return calls.apply("concat", made, spec.channel_axis)


def reference(op: Weighted, x: Array, *_constants: Array) -> Array:
    """``reference_integer_ops::ConvPerChannel`` and ``DepthwiseConvPerChannel``."""
    made = requantised(products(op.spec, op.filters, x) + op.bias, op.spec.requantise)
    return made if op.spec.layout == "NHWC" else np.moveaxis(made, 3, 1)


def products(spec: WindowSums, weights: Array, x: Array) -> npt.NDArray[np.int64]:
    """Return the accumulated sums of a convolution, channels last."""
    (top, left, bottom, right), (dy, dx) = spec.padding, spec.dilation
    borders = ((0, 0), (top, bottom), (left, right), (0, 0))
    image = x if spec.layout == "NHWC" else np.moveaxis(x, 1, 3)
    padded = np.pad(image.astype(np.int64), borders, constant_values=spec.input_zero)
    _, height, width, channels = spec.sizes(spec.output_shape)
    total = np.zeros((x.shape[0], height, width, channels), np.int64)
    filters = weights.astype(np.int64) - spec.weight_zero
    every = channels // spec.groups
    for ky, kx in np.ndindex(*filters.shape[:2]):
        rows = slice(ky * dy, ky * dy + (height - 1) * spec.strides[0] + 1, spec.strides[0])
        columns = slice(kx * dx, kx * dx + (width - 1) * spec.strides[1] + 1, spec.strides[1])
        part, taps = padded[:, rows, columns], filters[ky, kx]
        if spec.depthwise:
            total += np.repeat(part, every, axis=3) * taps
            continue
        depth = taps.shape[0]
        for group in range(spec.groups):
            some = slice(group * every, (group + 1) * every)
            total[..., some] += part[..., group * depth : (group + 1) * depth] @ taps[:, some]
    return total
