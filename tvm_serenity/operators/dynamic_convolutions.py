"""Convolutions of float images with 8-bit weights, as LiteRT's hybrid kernels compute them.

CONV_2D with one weight scale quantises images symmetrically. With a scale per channel, or with
groups, it quantises them with a zero point, as DEPTHWISE_CONV_2D always does. Padding is zero.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.kernels.dynamic_records import BatchSteps, DynamicConvolution
from tvm_serenity.kernels.records import WindowSums
from tvm_serenity.operators.convolutions import (
    BIAS,
    SOURCE,
    WEIGHTS,
    Fields,
    depthwise,
    products,
    taps_of,
)
from tvm_serenity.operators.dynamic_range import (
    Floats,
    bias_of,
    constants,
    finished,
    limits_of,
    quantised,
    quantised_reference,
    weights_of,
)
from tvm_serenity.operators.plain import activated
from tvm_serenity.operators.scene import Array, Calls, Expr, Scene, four


@dataclass(frozen=True, eq=False)
class ConvolutionOnTheFly:
    """A convolution with filters as in :class:`Weighted`, and scale and bias per channel.

    ``activation`` follows the convolution unless ``spec.limits`` express it.
    """

    spec: DynamicConvolution
    filters: Array
    scales: Floats
    bias: Floats | None
    activation: int


def read(scene: Scene, fields: Fields) -> ConvolutionOnTheFly | None:
    """Return the convolution of an operator; None if LiteRT has no kernel for its types."""
    found, alone = weights_of(scene, WEIGHTS, fields.channels), fields.channels == 3
    if found is None or scene.dtype(SOURCE) != "float32":
        return None
    weights, scales = found
    held = scene.operands[WEIGHTS]
    if held is None or held.params is None:
        return None
    if alone and len(held.params.scales) != held.shape[3]:
        return None  # LiteRT requires a scale per channel
    data, taps = taps_of(scene, fields, weights)
    shape = four(scene.shape(SOURCE))
    data = depthwise(data, taps, shape)
    sums = WindowSums(
        layout=taps.layout,
        pieces=(shape,),
        dtype="int8",
        weight_shape=data.shape,
        weight_dtype="int8",
        strides=taps.strides,
        padding=taps.padding,
        dilation=taps.dilation,
        groups=taps.groups,
        input_zero=0,
        weight_zero=0,
    )
    by_channel = taps.groups > 1 or scales.size > 1
    activation, bias = scene.options.u8(fields.activation), bias_of(scene, BIAS)
    if bias is not None and bias.size != sums.channels:
        raise UnsupportedError(
            f"its bias has {bias.size} values; expected one per channel ({sums.channels})"
        )
    limits = limits_of(activation)
    channel_first = by_channel and not alone
    asymmetric, biased = by_channel or alone, bias is not None
    spec = DynamicConvolution(sums, asymmetric, scales.size, channel_first, biased, limits)
    return ConvolutionOnTheFly(spec, data, scales, bias, 0 if limits else activation)


def compute(op: ConvolutionOnTheFly, values: Sequence[Expr], calls: Calls) -> Expr:
    """Return the calls that quantise the image and sum the products."""
    from tvm_serenity.kernels.dynamic import convolution

    spec = op.spec
    source = BatchSteps(spec.taps.pieces[0], spec.asymmetric)
    given = quantised(source, values[SOURCE], calls)
    held = constants(op.filters, op.scales, op.bias)
    name = "d_depthwise" if spec.taps.depthwise else "d_conv"
    made = calls.kernel(name, convolution(spec), *given, *held)
    return activated(calls, made, op.activation)


def reference(op: ConvolutionOnTheFly, x: Array, *_constants: Array) -> Array:
    """``HybridConv``, ``HybridConvPerChannel`` and ``DepthwiseConvHybridPerChannel``."""
    spec = op.spec
    whole, scale = quantised_reference(x.reshape(len(x), -1), spec.asymmetric)
    total = products(spec.taps, op.filters, whole.reshape(x.shape)).astype(np.float32)
    scale = scale.reshape(-1, 1, 1, 1)
    made = total * op.scales * scale if spec.channel_first else total * (op.scales * scale)
    made = finished(made, op.bias, spec.limits)
    return np.tanh(made) if op.activation else made
