"""Transposed convolutions of float images with 8-bit weights, as in LiteRT's hybrid kernel.

Images are quantised with a zero point, for weights with one scale and for weights with a scale per
channel. Each product is converted to float before it is added to its result, whereas convolutions
add integers.
"""

from dataclasses import dataclass

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.kernels.dynamic_records import BatchSteps, DynamicTransposed
from tvm_serenity.operators.dynamic_range import (
    Floats,
    constants,
    finished,
    quantised,
    quantised_reference,
)
from tvm_serenity.operators.scene import Array, Calls, Expr


@dataclass(frozen=True, eq=False)
class TransposedOnTheFly:
    """A transposed convolution.

    ``filters``: [height, width, input channels, output channels].
    """

    spec: DynamicTransposed
    filters: Array
    scales: Floats
    bias: Floats | None


def checked(op: TransposedOnTheFly) -> TransposedOnTheFly:
    """Return ``op``; raise :class:`UnsupportedError` unless its bias has one number per channel."""
    if op.bias is not None and op.bias.size != op.spec.output_shape[3]:
        raise UnsupportedError(
            f"its bias has {op.bias.size} values; expected one per channel "
            f"({op.spec.output_shape[3]})"
        )
    return op


def compute(op: TransposedOnTheFly, value: Expr, calls: Calls) -> Expr:
    """Return the calls that quantise the image and add its products to the result."""
    from tvm_serenity.kernels.dynamic_transposed import transposed

    given = quantised(BatchSteps(op.spec.input_shape, True), value, calls)
    held = constants(op.filters, op.scales, op.bias)
    return calls.kernel("d_conv_transpose", transposed(op.spec), *given, *held)


def reference(op: TransposedOnTheFly, *arrays: Array) -> Array:
    """``HybridTransposeConv``: floats are added image by image, row by row, channel by channel."""
    spec, x = op.spec, arrays[2]
    whole, scale = quantised_reference(x.reshape(len(x), -1), True)
    source, filters = whole.reshape(x.shape), op.filters.astype(np.int64)
    n, height, width, channels = spec.output_shape
    _, rows, columns, depth = spec.input_shape
    (sy, sx), (top, left), (kh, kw, _, _) = spec.strides, spec.before, spec.weight_shape
    more = (rows * sy + kh + top + height, columns * sx + kw + left + width)
    total = np.zeros((n, *more, channels), np.float32)
    steps = scale.reshape(-1, 1, 1, 1)
    for row, column, c in np.ndindex(rows, columns, depth):
        product = source[:, row, column, c].reshape(-1, 1, 1, 1) * filters[None, :, :, c]
        part = total[:, row * sy : row * sy + kh, column * sx : column * sx + kw]
        part += product.astype(np.float32) * op.scales * steps
    return finished(total[:, top : top + height, left : left + width], op.bias, spec.limits)
