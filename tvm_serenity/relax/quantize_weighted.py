"""Conversion of convolutions and dense layers between ``dequantize`` and ``quantize``.

Layouts, weights and biases are read here, in Relax's form; the operator's file defines the
computation (``operators/convolutions.py``, ``operators/fully_connected.py``).
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.operators.convolutions import Taps, convolution_of
from tvm_serenity.operators.fully_connected import dense_of
from tvm_serenity.operators.transpose_conv import transposed_of
from tvm_serenity.operators.weighted import Filters, WeightedLayer, summable
from tvm_serenity.relax.quantize_read import Leaf, RefusedError, Weight, refusing, shape_of
from tvm_serenity.relax.quantize_records import computed, turned
from tvm_serenity.relax.quantize_region import ClampedResult, Rewriter

Array = npt.NDArray[Any]
CONV, MATMUL = "relax.nn.conv2d", "relax.matmul"
TRANSPOSED = "relax.nn.conv2d_transpose"


def weighted(rewriter: Rewriter, region: ClampedResult) -> Any:
    """Convert ``[bias +] conv2d | conv2d_transpose | matmul`` with constant weights."""
    call, bias = find(rewriter, region.expr)
    if call is None:
        raise RefusedError("not a convolution or matmul")
    if compat.op_name(call) == CONV:
        return _convolution(rewriter, region, call, bias)
    if compat.op_name(call) == TRANSPOSED:
        return _transposed(rewriter, region, call, bias)
    return _dense(rewriter, region, call, bias)


def find(rewriter: Rewriter, expr: relax.Expr) -> tuple[Any, Any]:
    """Return the weighted sum that ``expr`` is and its bias, or (None, None)."""
    scope = rewriter.scope
    call = scope.call(expr, CONV, TRANSPOSED, MATMUL)
    if call is not None:
        return call, None
    total = scope.call(expr, "relax.add")
    if total is None:
        return None, None
    for value, bias in (total.args, reversed(total.args)):
        call = scope.call(value, CONV, TRANSPOSED, MATMUL)
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


def _convolution(
    rewriter: Rewriter, region: ClampedResult, call: relax.Call, bias: relax.Var
) -> Any:
    attrs = call.attrs
    layout = str(attrs.data_layout)
    if layout not in ("NHWC", "NCHW"):
        raise RefusedError(f"convolutions of layout {layout} are not supported")
    x = rewriter.scope.activation(call.args[0])
    weight = _canonical(rewriter.scope.weight(call.args[1]), str(attrs.kernel_layout))
    padding = _four([int(p) for p in attrs.padding])
    taps = Taps(layout, _two(attrs.strides), padding, _two(attrs.dilation), int(attrs.groups))
    layer = _layer(rewriter, region, (x, weight, bias), shape_of(call.ty))
    return computed(rewriter, "CONV_2D", lambda: convolution_of(layer, taps), [x])


def _transposed(
    rewriter: Rewriter, region: ClampedResult, call: relax.Call, bias: relax.Var
) -> Any:
    """Return a transposed convolution, computed in NHWC."""
    attrs, layout = call.attrs, str(call.attrs.data_layout)
    if layout not in ("NHWC", "NCHW") or int(attrs.groups) != 1 or _two(attrs.dilation) != (1, 1):
        raise RefusedError(
            "transposed convolutions with groups, dilation or other layouts are not supported"
        )
    x = rewriter.scope.activation(call.args[0])
    weight = _canonical(rewriter.scope.weight(call.args[1]), str(attrs.kernel_layout))
    axes = [layout.index(axis) for axis in "NHWC"]
    source, made = (tuple(s[a] for a in axes) for s in (x.shape, shape_of(call.ty)))
    layer = _layer(rewriter, region, (Leaf(x.expr, x.params, source), weight, bias), made)
    top, left, *_ = _four([int(p) for p in attrs.padding])
    value = turned(rewriter, rewriter.stored(x), axes)
    found = computed(
        rewriter,
        "TRANSPOSE_CONV",
        lambda: transposed_of(layer, _two(attrs.strides), (top, left)),
        [x],
        [None, None, value],
    )
    return turned(rewriter, found, ["NHWC".index(axis) for axis in layout])


def _canonical(weight: Weight, layout: str) -> Weight:
    """Return the weight as (height, width, input channels of a group, output channels)."""
    if sorted(layout) != sorted("HWIO"):
        raise RefusedError(
            f"weights have the layout {layout}; supported are the permutations of HWIO"
        )
    order = [layout.index(axis) for axis in "HWIO"]
    return weight.moved(lambda array: np.transpose(array, order))


def _dense(rewriter: Rewriter, region: ClampedResult, call: relax.Call, bias: relax.Var) -> Any:
    x = rewriter.scope.activation(call.args[0])
    weight, made = rewriter.scope.weight(call.args[1]), shape_of(call.ty)
    if weight.data.ndim != 2:
        raise RefusedError(f"a matmul with {weight.data.ndim}-dimensional weights is not supported")
    layer = _layer(rewriter, region, (x, weight, bias), made)
    return computed(rewriter, "FULLY_CONNECTED", lambda: dense_of(layer, made), [x])


def _layer(
    rewriter: Rewriter,
    region: ClampedResult,
    parts: tuple[Leaf, Weight, Any],
    made: tuple[int, ...],
) -> WeightedLayer:
    """Return the layer of an activation, weights with output channels last, and a bias."""
    x, weight, bias = parts
    result, filters = region.stored(made), filters_of(weight)
    with refusing():
        summable("weighted operator", x.stored, result)
    return WeightedLayer(
        source=x.stored,
        result=result,
        filters=filters,
        bias=bias_of(rewriter, bias, x, filters, region.result.scale),
        limits=(region.low, region.high),
        rounding=rewriter.rounding,
    )


def filters_of(weight: Weight) -> Filters:
    """Return weights with output channels last."""
    scales, zeros = weight.per_channel(weight.data.ndim - 1)
    if len(set(zeros.tolist())) != 1:
        raise RefusedError("its weights have a zero point per channel")
    if weight.data.dtype.name not in ("int8", "uint8"):
        raise RefusedError(f"its weights are stored as {weight.data.dtype.name}")
    return Filters(np.ascontiguousarray(weight.data), scales, int(zeros[0]))


def bias_of(
    rewriter: Rewriter, bias: relax.Var, x: Leaf, filters: Filters, result: float
) -> npt.NDArray[np.int64]:
    """Return the bias in the scale of the products, one number per channel.

    A bias in another scale, or in floats, is rounded to it.
    """
    scales, channels = filters.scales, filters.data.shape[-1]
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
        raise RefusedError("its bias is not one number per channel")
    return np.asarray(np.broadcast_to(values.astype(np.int64), (channels,)))


def _two(values: Iterable[int]) -> tuple[int, int]:
    first, second = (int(v) for v in values)
    return first, second


def _four(values: list[int]) -> tuple[int, int, int, int]:
    if len(values) == 2:
        values = [*values, *values]
    top, left, bottom, right = values
    return top, left, bottom, right
