"""Convolutions of images: what CONV_2D and DEPTHWISE_CONV_2D share.

The input's zero point is folded into the bias; padding reads the zero point, so a PAD by it is
part of the convolution. An input that is a concat which only convolutions read is read in pieces;
a depthwise convolution of pieces makes pieces.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.kernels.records import Convolution
from tvm_serenity.operators.needs import SAME, Need, Seen, filter_height, windowed
from tvm_serenity.operators.scene import Array, Calls, Expr, Scene, four
from tvm_serenity.operators.weighted import (
    bias_of,
    filters_of,
    finish,
    folded,
    multipliers,
    narrow,
    requantised,
    summable,
)
from tvm_serenity.operators.windows import around
from tvm_serenity.quantize.fixed import multiplier

_SOURCE, WEIGHTS, _BIAS = range(3)
_PADDING, _STRIDE_W, _STRIDE_H = range(3)


@dataclass(frozen=True)
class Fields:
    """Which options fields hold the activation and the dilations, and the weights' channels."""

    activation: int
    dilation_w: int
    dilation_h: int
    channels: int


@dataclass(frozen=True, eq=False)
class Weighted:
    """A convolution; ``filters`` are [height, width, input channels of a group, channels].

    Those of a depthwise one are [height, width, channels]. ``bias`` holds the zero point.
    """

    spec: Convolution
    filters: Array
    bias: npt.NDArray[np.int32]


def by_rows(op: Seen, fields: Fields) -> tuple[Need, ...]:
    """Return the need of a convolution."""
    return windowed(op, filter_height(op, WEIGHTS), op.options.i32(fields.dilation_h, 1))


def read(scene: Scene, fields: Fields) -> Weighted | None:
    """Return the convolution that an operator is; None of floats with quantised weights."""
    if scene.is_float(_SOURCE):
        return None
    source, result, options = scene.stored(_SOURCE), scene.result(), scene.options
    summable(scene, source, result)
    filters = filters_of(scene, WEIGHTS, fields.channels)
    shape, made = four(source.shape), four(result.shape)
    data, groups = _arranged(filters.data, fields.channels, shape[3])
    strides = (options.i32(_STRIDE_H), options.i32(_STRIDE_W))
    dilation = (options.i32(fields.dilation_h, 1), options.i32(fields.dilation_w, 1))
    if min(*strides, *dilation) < 1:
        raise UnsupportedError(f"strides of {strides}, dilations of {dilation}")
    same = options.u8(_PADDING) == SAME
    reach = [(size - 1) * step + 1 for size, step in zip(data.shape[:2], dilation, strict=True)]
    top, bottom = around(shape[1], made[1], reach[0], strides[0], same)
    left, right = around(shape[2], made[2], reach[1], strides[1], same)
    reals = multipliers(source, filters, result, source.dtype == "uint8")
    spec = Convolution(
        layout="NHWC",
        pieces=(shape,),
        dtype=source.dtype,
        weight_shape=data.shape,
        weight_dtype=str(data.dtype),
        strides=strides,
        padding=(top, left, bottom, right),
        dilation=dilation,
        groups=groups,
        input_zero=source.zero,
        weight_zero=filters.zero,
        requantise=finish(scene, reals, result, scene.limits(result, fields.activation)),
    )
    bias = bias_of(scene, _BIAS, data.shape[-1]) + folded(data, filters.zero, source)
    return Weighted(spec, data, narrow(bias))


def _arranged(data: Array, channels: int, depth: int) -> tuple[Array, int]:
    """Weights with the output channels last, and how many groups they make of ``depth``."""
    if data.ndim != 4:
        raise UnsupportedError(f"weights of shape {list(data.shape)}")
    if channels == 3:  # one filter for each of the output channels, made of one input channel
        if data.shape[0] != 1 or data.shape[3] % depth:
            raise UnsupportedError(f"weights of shape {list(data.shape)} for {depth} channels")
        moved = np.transpose(data, (1, 2, 0, 3))
        groups = depth
    else:
        moved = np.transpose(data, (1, 2, 3, 0))
        groups = depth // max(data.shape[3], 1)
        if groups * data.shape[3] != depth or data.shape[0] % max(groups, 1):
            raise UnsupportedError(f"weights of shape {list(data.shape)} for {depth} channels")
    if 1 < groups == depth and moved.shape[2] == 1:
        moved = moved[:, :, 0, :]
    return np.ascontiguousarray(moved), groups


def compute(op: Weighted, values: Sequence[Expr], calls: Calls) -> Expr:
    """Return the call of a convolution, or a concat of the calls of its pieces."""
    from tvm_serenity.kernels.convolution import convolution

    spec, pieces = op.spec, [values[_SOURCE]]
    inner = calls.within_border(values[_SOURCE], spec.input_zero)
    if inner is not None:
        (expr, shape, amounts) = inner
        pieces = [expr]
        top, left, bottom, right = (a + b for a, b in zip(spec.padding, amounts, strict=True))
        spec = replace(spec, pieces=(four(shape),), padding=(top, left, bottom, right))
    elif spec.groups in (1, spec.pieces[0][3]):
        joined = calls.pieces(_SOURCE, 3)
        if joined is not None:
            pieces = [expr for expr, _ in joined]
            spec = replace(spec, pieces=tuple(four(shape) for _, shape in joined))
    if not spec.depthwise or len(pieces) == 1:
        constants = (op.filters, op.bias, *spec.requantise.arrays())
        name = "q_depthwise" if spec.depthwise else "q_conv"
        return calls.kernel(name, convolution(spec), *pieces, *constants)
    made = [_of_piece(replace(op, spec=spec), i, pieces[i], calls) for i in range(len(pieces))]
    return calls.apply("concat", made, 3)


def _of_piece(op: Weighted, index: int, piece: Expr, calls: Calls) -> Expr:
    """A depthwise convolution of one piece of its input: a piece of its result."""
    from tvm_serenity.kernels.convolution import convolution

    spec, sizes = op.spec, [shape[3] for shape in op.spec.pieces]
    every = spec.channels // sum(sizes)
    first = sum(sizes[:index]) * every
    part = slice(first, first + sizes[index] * every)
    some = np.ascontiguousarray(op.filters[..., part])
    finish_ = replace(spec.requantise, multiplier=multiplier(spec.requantise.multiplier.real[part]))
    made = replace(
        spec,
        pieces=(spec.pieces[index],),
        weight_shape=some.shape,
        groups=sizes[index],
        requantise=finish_,
    )
    constants = (some, op.bias[part], *finish_.arrays())
    return calls.kernel("q_depthwise", convolution(made), piece, *constants)


def reference(op: Weighted, x: Array, *_constants: Array) -> Array:
    """``reference_integer_ops::ConvPerChannel`` and ``DepthwiseConvPerChannel``."""
    spec = op.spec
    (top, left, bottom, right), (dy, dx) = spec.padding, spec.dilation
    borders = ((0, 0), (top, bottom), (left, right), (0, 0))
    padded = np.pad(x.astype(np.int64), borders, constant_values=spec.input_zero)
    _, height, width, channels = spec.output_shape
    total = np.zeros((x.shape[0], height, width, channels), np.int64) + op.bias
    filters = op.filters.astype(np.int64) - spec.weight_zero
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
    return requantised(total, spec.requantise)
