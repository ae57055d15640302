"""MAX_POOL_2D: the largest value of each window."""

from collections.abc import Sequence

import numpy as np

from tvm_serenity.operators.extents import of_the_batch
from tvm_serenity.operators.parts import IntegerMeaning, LayerFacts, Rows, ShapeMeaning, Storage
from tvm_serenity.operators.record import Operator, no_scratch
from tvm_serenity.operators.scene import Array, Calls, Expr
from tvm_serenity.operators.windows import Windows, cut, pooled_by_rows, read_windows


def _compute(op: Windows, values: Sequence[Expr], calls: Calls) -> Expr:
    made = calls.apply(
        "nn.max_pool2d",
        values[0],
        pool_size=op.size,
        strides=op.strides,
        padding=op.padding,
        layout="NHWC",
    )
    limits = np.iinfo(op.dtype)
    if (op.low, op.high) == (limits.min, limits.max):
        return made
    return calls.apply("clip", made, op.low, op.high)


def _reference(op: Windows, x: Array) -> Array:
    elements, inside = cut(x, op.size, op.strides, op.padding)
    most = np.where(inside, elements, np.iinfo(op.dtype).min).max((-2, -1))
    return np.asarray(np.clip(most, op.low, op.high)).astype(op.dtype)


OPERATORS = (
    Operator(
        kinds=("MAX_POOL_2D",),
        shapes=ShapeMeaning(result=of_the_batch),
        relax=("nn.max_pool2d",),
        relay=("nn.max_pool2d",),
        rows=Rows(needs=pooled_by_rows),
        layer=LayerFacts(channel=3),
        storage=Storage(scratch=no_scratch),
        integers=IntegerMeaning(
            read=read_windows, compute=_compute, reference=_reference, in_float=True
        ),
    ),
    Operator(kinds=("MaxPool",), layer=LayerFacts(channel=1)),
)
