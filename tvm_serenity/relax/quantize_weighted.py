"""Rules for convolutions and dense layers."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.kernels.convolution import Convolution, Dense, convolution, dense
from tvm_serenity.kernels.records import Requantise
from tvm_serenity.quantize.doubles import exact_single
from tvm_serenity.quantize.fixed import multiplier
from tvm_serenity.relax.quantize_concat import folded_pieces
from tvm_serenity.relax.quantize_read import Leaf, RefusedError, Weight, image_shape, shape_of
from tvm_serenity.relax.quantize_region import Region, Rewriter

Array = npt.NDArray[Any]
CONV, MATMUL = "relax.nn.conv2d", "relax.matmul"


def weighted(rewriter: Rewriter, region: Region) -> Any:
    """Convert ``[bias +] conv2d | matmul`` with constant weights."""
    call, bias = find(rewriter, region.expr)
    if call is None:
        raise RefusedError("no convolution or matmul")
    if compat.op_name(call) == CONV:
        return _convolution(rewriter, region, call, bias)
    return _dense(rewriter, region, call, bias)


def find(rewriter: Rewriter, expr: relax.Expr) -> tuple[Any, Any]:
    """Return the convolution or matmul of ``expr`` and what is added to it, or (None, None)."""
    scope = rewriter.scope
    call = scope.call(expr, CONV, MATMUL)
    if call is not None:
        return call, None
    total = scope.call(expr, "relax.add")
    if total is None:
        return None, None
    for value, bias in (total.args, reversed(total.args)):
        call = scope.call(value, CONV, MATMUL)
        if call is not None and _is_fixed(rewriter, bias):
            return call, bias
    return None, None


def _is_fixed(rewriter: Rewriter, bias: relax.Var) -> bool:
    if rewriter.scope.constant(bias) is not None:
        return True
    try:
        rewriter.scope.weight(bias)
    except RefusedError:
        return False
    return True


def _convolution(rewriter: Rewriter, region: Region, call: relax.Call, bias: relax.Var) -> Any:
    attrs = call.attrs
    layout = str(attrs.data_layout)
    if layout not in ("NHWC", "NCHW"):
        raise RefusedError(f"a convolution of layout {layout}")
    x = summable(rewriter, rewriter.scope.activation(call.args[0]), region)
    weight = _canonical(rewriter.scope.weight(call.args[1]), str(attrs.kernel_layout))
    groups = int(attrs.groups)
    padding = _four([int(p) for p in attrs.padding])
    pieces, padding = _pieces(rewriter, x, padding, layout, groups)
    data, scales, weight_zero = weight_arrays(weight)
    in_channels = x.shape[3] if layout == "NHWC" else x.shape[1]
    if groups > 1 and groups == in_channels and data.shape[2] == 1:
        data = data[:, :, 0, :]
    reals = real_multipliers(x.params.scale, scales, region.result.scale, x.params.dtype == "uint8")
    offset = bias_of(rewriter, bias, x, scales, region.result.scale, data.shape[-1])
    folded = data.astype(np.int64) - weight_zero
    offset = offset - x.params.zero_point * folded.sum(axis=tuple(range(data.ndim - 1)))
    spec = Convolution(
        layout=layout,
        pieces=tuple(image_shape(p.ty) for p in pieces),
        dtype=x.params.dtype,
        weight_shape=data.shape,
        weight_dtype=str(data.dtype),
        strides=_two(attrs.strides),
        padding=padding,
        dilation=_two(attrs.dilation),
        groups=groups,
        input_zero=x.params.zero_point,
        weight_zero=weight_zero,
        requantise=requantise_of(region, reals, rewriter.rounding),
    )
    if not spec.depthwise or len(pieces) == 1:
        arguments = [*pieces, *constants_of(data, offset, spec.requantise)]
        name = "q_depthwise" if spec.depthwise else "q_conv"
        return rewriter.kernel(name, convolution(spec), arguments)
    made = [_of_piece(rewriter, spec, pieces, i, data, offset, reals) for i in range(len(pieces))]
    return rewriter.builder.emit(relax.op.concat(made, spec.channel_axis), region.name)


def _of_piece(
    rewriter: Rewriter,
    spec: Convolution,
    pieces: list[Any],
    index: int,
    data: Array,
    offset: Array,
    reals: Array,
) -> Any:
    """A depthwise convolution of one piece of its input: a piece of its result."""
    sizes = [spec.sizes(shape)[3] for shape in spec.pieces]
    every = spec.channels // sum(sizes)
    first = sum(sizes[:index]) * every
    part = slice(first, first + sizes[index] * every)
    some = np.ascontiguousarray(data[..., part])
    finish = replace(spec.requantise, multiplier=multiplier(reals[part]))
    piece = replace(
        spec,
        pieces=(spec.pieces[index],),
        weight_shape=some.shape,
        groups=sizes[index],
        requantise=finish,
    )
    arguments = [pieces[index], *constants_of(some, offset[part], finish)]
    return rewriter.kernel("q_depthwise", convolution(piece), arguments)


def _pieces(
    rewriter: Rewriter, x: Leaf, padding: tuple[int, int, int, int], layout: str, groups: int
) -> tuple[list[Any], tuple[int, int, int, int]]:
    """The tensors that hold ``x``: of a folded concat, or without its padding."""
    pad = rewriter.scope.call(x.expr, "relax.nn.pad")
    if pad is not None:
        amount = [int(p) for p in pad.attrs.pad_width]
        value = compat.scalar(pad.attrs.pad_value)
        h, w = (1, 2) if layout == "NHWC" else (2, 3)
        elsewhere = [a for i, a in enumerate(amount) if i // 2 not in (h, w)]
        constant = str(pad.attrs.pad_mode) == "constant"
        if constant and value == x.params.zero_point and not any(elsewhere):
            more = (amount[2 * h], amount[2 * w], amount[2 * h + 1], amount[2 * w + 1])
            top, left, bottom, right = (a + b for a, b in zip(padding, more, strict=True))
            inner = Leaf(pad.args[0], x.params, shape_of(pad.args[0].ty))
            return [rewriter.stored(inner)], (top, left, bottom, right)
    if groups in (1, x.shape[layout.index("C")]):
        pieces = folded_pieces(rewriter, x.expr, 3 if layout == "NHWC" else 1)
        if pieces is not None:
            return pieces, padding
    return [rewriter.stored(x)], padding


def _canonical(weight: Weight, layout: str) -> Weight:
    """The weight with axes (height, width, input channels of a group, output channels)."""
    order = {"HWIO": (0, 1, 2, 3), "HWOI": (0, 1, 3, 2), "OIHW": (2, 3, 1, 0)}.get(layout)
    if order is None:
        raise RefusedError(f"weights of layout {layout}")
    return weight.moved(lambda array: np.transpose(array, order))


def _dense(rewriter: Rewriter, region: Region, call: relax.Call, bias: relax.Var) -> Any:
    x = summable(rewriter, rewriter.scope.activation(call.args[0]), region)
    weight = rewriter.scope.weight(call.args[1])
    if weight.data.ndim != 2:
        raise RefusedError(f"a matmul of {weight.data.ndim}-dimensional weights")
    data, scales, weight_zero = weight_arrays(weight)
    inputs, units = data.shape
    rows = int(np.prod(x.shape)) // inputs
    reals = real_multipliers(x.params.scale, scales, region.result.scale, False)
    offset = bias_of(rewriter, bias, x, scales, region.result.scale, units)
    offset = offset - x.params.zero_point * (data.astype(np.int64) - weight_zero).sum(axis=0)
    spec = Dense(
        rows,
        inputs,
        units,
        x.params.dtype,
        str(data.dtype),
        weight_zero,
        _rounded_once(region, reals, rewriter.rounding),
    )
    source = rewriter.reshaped(rewriter.stored(x), (rows, inputs))
    made = rewriter.kernel(
        "q_dense", dense(spec), [source, *constants_of(data, offset, spec.requantise)]
    )
    return rewriter.reshaped(made, shape_of(call.ty))


def _rounded_once(region: Region, reals: Array, rounding: str) -> Requantise:
    """How LiteRT's reference FULLY_CONNECTED rounds: in float64, or integers equal to that."""
    result = region.result
    if rounding != "tflite":
        return requantise_of(region, reals, rounding)
    zero = result.zero_point
    found = exact_single(reals, region.low - zero, region.high - zero)
    made = multiplier(reals) if found is None else found
    how = "double" if found is None else "single"
    return Requantise(made, zero, region.low, region.high, result.dtype, how)


def summable(rewriter: Rewriter, x: Leaf, region: Region) -> Leaf:
    """Return ``x``, refused where its products with weights have no integer sum of LiteRT's."""
    kinds = {x.params.dtype, region.result.dtype}
    if kinds == {"int16"} and rewriter.rounding == "tflite":
        return x
    if not kinds <= {"int8", "uint8"}:
        raise RefusedError(f"a weighted operator from {x.params.dtype} to {region.result.dtype}")
    return x


def weight_arrays(weight: Weight) -> tuple[Array, Array, int]:
    """Return values, scales of the output channels (the last axis), and the one zero point."""
    scales, zeros = weight.per_channel(weight.data.ndim - 1)
    if len(set(zeros.tolist())) != 1:
        raise RefusedError("its weights have a zero point a channel")
    if weight.data.dtype.name not in ("int8", "uint8"):
        raise RefusedError(f"its weights are stored as {weight.data.dtype.name}")
    return np.ascontiguousarray(weight.data), scales, int(zeros[0])


def real_multipliers(source: float, scales: Array, result: float, in_float: bool) -> Array:
    """Return the real multipliers, with TFLite's float32 product of scales where it has one."""
    if in_float:
        product = np.float32(source) * scales.astype(np.float32)
        return np.asarray(product.astype(np.float64) / result)
    return np.asarray(source * scales / result)


def bias_of(
    rewriter: Rewriter,
    bias: relax.Var,
    x: Leaf,
    scales: Array,
    result: float,
    channels: int,
) -> npt.NDArray[np.int64]:
    """Return the bias in steps of the products, one number a channel."""
    if bias is None:
        return np.zeros(channels, np.int64)
    expected = x.params.scale * scales
    fixed = rewriter.scope.constant(bias)
    if fixed is not None:
        return _per_channel(np.rint(fixed.reshape(-1) / expected), channels)
    stored = rewriter.scope.weight(bias)
    values, scale = stored.data.reshape(-1).astype(np.int64), stored.scale.reshape(-1)
    if stored.zero.any():
        values = values - stored.zero.reshape(-1)
    if values.size in (1, channels) and (np.abs(scale - expected) / result <= 0.02).all():
        return _per_channel(values, channels)
    return _per_channel(np.rint(values * scale / expected), channels)


def _per_channel(values: Array, channels: int) -> npt.NDArray[np.int64]:
    if values.size not in (1, channels):
        raise RefusedError("its bias is not one number a channel")
    return np.asarray(np.broadcast_to(values.astype(np.int64), (channels,)))


def requantise_of(region: Region, reals: Array, rounding: str) -> Requantise:
    """Return how sums become stored values of ``region``."""
    result, made = region.result, multiplier(reals)
    if result.dtype == "int16" and rounding != "float":
        rounding = "wide"
        if max(made.shift) > 7:
            raise RefusedError("its sums are scaled up by more than LiteRT can")
    return Requantise(made, result.zero_point, region.low, region.high, result.dtype, rounding)


def constants_of(data: Array, offset: Array, requantise: Requantise) -> list[Any]:
    """Return weights, bias and multipliers as constants; refuse a bias of more than 32 bits."""
    limits = np.iinfo(np.int32)
    if offset.min() < limits.min or offset.max() > limits.max:
        raise RefusedError("its bias does not fit into 32 bits")
    return [
        compat.constant(array) for array in (data, offset.astype(np.int32), *requantise.arrays())
    ]


def _two(values: Any) -> tuple[int, int]:
    first, second = (int(v) for v in values)
    return first, second


def _four(values: list[int]) -> tuple[int, int, int, int]:
    if len(values) == 2:
        values = [*values, *values]
    top, left, bottom, right = values
    return top, left, bottom, right
