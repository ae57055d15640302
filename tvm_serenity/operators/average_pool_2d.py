"""AVERAGE_POOL_2D: the mean of each window."""

from collections.abc import Sequence

import numpy as np

from tvm_serenity.graph import Tensor
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Array, Calls, Expr, Shape
from tvm_serenity.operators.windows import Windows, cut, pooled_by_rows, read_windows


def _scratch(shapes: Sequence[Shape | None], made: Tensor | None) -> int | None:
    """One int32 a channel."""
    if made is not None and made.dtype == "float32":
        return 0
    if made is None or made.dtype != "int8" or not shapes or shapes[0] is None:
        return None
    return 4 * shapes[0][-1]


def _compute(op: Windows, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels.pooling import AveragePool, average_pool

    spec = AveragePool(
        layout="NHWC",
        shape=op.shape,
        output_shape=op.made,
        dtype=op.dtype,
        window=op.size,
        strides=op.strides,
        padding=op.padding,
        low=op.low,
        high=op.high,
        zero_point=0,
    )
    return calls.kernel("q_avg_pool", average_pool(spec), *values)


def _reference(op: Windows, x: Array) -> Array:
    """The sum of stored values over their number, halves away from zero; uint8 rounds up."""
    elements, inside = cut(op, x)
    total, count = elements.sum((-2, -1)), inside.sum((-2, -1))
    half = count // 2
    sign = 1 if op.dtype == "uint8" else np.where(total > 0, 1, -1)
    mean = sign * ((sign * total + half) // count)
    return np.asarray(np.clip(mean, op.low, op.high)).astype(op.dtype)


OPERATORS = (
    Operator(
        kinds=("AVERAGE_POOL_2D",),
        by_rows=pooled_by_rows,
        sums_rows=True,
        channel=3,
        scratch=_scratch,
        read=read_windows,
        compute=_compute,
        reference=_reference,
        in_float=True,
    ),
    Operator(kinds=("AveragePool",), channel=1),
)
