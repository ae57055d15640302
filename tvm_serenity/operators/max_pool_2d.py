"""MAX_POOL_2D: the largest value of each window."""

from collections.abc import Sequence

import numpy as np

from tvm_serenity.operators.needs import Need, windowed
from tvm_serenity.operators.record import Operator, Seen, no_scratch
from tvm_serenity.operators.scene import ALL, Array, Calls, Expr, Scene
from tvm_serenity.operators.windows import Windows, cut, read_windows

_FILTER_H = 4


def _by_rows(op: Seen) -> tuple[Need, ...]:
    return windowed(op, op.options.i32(_FILTER_H))


def _read(scene: Scene) -> Windows:
    (source,), result = scene.inputs(), scene.result()
    scene.only(ALL, source, result)
    scene.unscaled(source, result)
    return read_windows(scene, source, result)


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
    elements, inside = cut(op, x)
    most = np.where(inside, elements, np.iinfo(op.dtype).min).max((-2, -1))
    return np.asarray(np.clip(most, op.low, op.high)).astype(op.dtype)


OPERATORS = (
    Operator(
        kinds=("MAX_POOL_2D",),
        by_rows=_by_rows,
        channel=3,
        scratch=no_scratch,
        read=_read,
        compute=_compute,
        reference=_reference,
        in_float=True,
    ),
    Operator(kinds=("MaxPool",), channel=1),
)
