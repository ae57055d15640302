"""The rule for transposed convolutions, which the importer puts between two transposes."""

from typing import Any

import numpy as np

from tvm_serenity.kernels.records import TransposedConvolution
from tvm_serenity.kernels.transposed import transposed
from tvm_serenity.relax.quantize_read import RefusedError, shape_of
from tvm_serenity.relax.quantize_region import Region, Rewriter
from tvm_serenity.relax.quantize_weighted import (
    bias_of,
    constants_of,
    real_multipliers,
    requantise_of,
    summable,
    weight_arrays,
)

TRANSPOSED = "relax.nn.conv2d_transpose"


def transposed_call(rewriter: Rewriter, expr: Any) -> tuple[Any, Any]:
    """Return the transposed convolution that ``expr`` is and its bias, or (None, None)."""
    scope, bias = rewriter.scope, None
    total = scope.call(expr, "relax.add")
    if total is not None:
        expr, bias = total.args
    turned = scope.call(expr, "relax.permute_dims")
    call = None if turned is None else scope.call(turned.args[0], TRANSPOSED)
    if call is None or _order(turned) != [0, 2, 3, 1]:
        return None, None
    return call, bias


def transposed_convolution(rewriter: Rewriter, region: Region) -> Any:
    """Convert ``[bias +] permute_dims(conv2d_transpose(permute_dims(x), weights))``."""
    call, bias = transposed_call(rewriter, region.expr)
    attrs = call.attrs
    turned = rewriter.scope.call(call.args[0], "relax.permute_dims")
    if turned is None or _order(turned) != [0, 3, 1, 2] or int(attrs.groups) != 1:
        raise RefusedError("a transposed convolution of groups or of another layout")
    x = summable(rewriter, rewriter.scope.activation(turned.args[0]), region)
    weight = rewriter.scope.weight(call.args[1])
    data, scales, weight_zero = weight_arrays(weight.moved(lambda a: np.transpose(a, (2, 3, 0, 1))))
    n, channels, height, width = shape_of(call.ty)
    reals = real_multipliers(x.params.scale, scales, region.result.scale, x.params.dtype == "uint8")
    spec = TransposedConvolution(
        (x.shape[0], x.shape[1], x.shape[2], x.shape[3]),
        (n, height, width, channels),
        x.params.dtype,
        (data.shape[0], data.shape[1], data.shape[2], data.shape[3]),
        str(data.dtype),
        (int(attrs.strides[0]), int(attrs.strides[1])),
        (int(attrs.padding[0]), int(attrs.padding[1])),
        x.params.zero_point,
        weight_zero,
        requantise_of(region, reals, rewriter.rounding),
    )
    offset = bias_of(rewriter, bias, x, scales, region.result.scale, channels)
    arguments = [rewriter.stored(x), *constants_of(data, offset, spec.requantise)]
    return rewriter.kernel("q_conv_transpose", transposed(spec), arguments)


def _order(call: Any) -> list[int]:
    return [int(axis) for axis in call.attrs.axes or ()]
