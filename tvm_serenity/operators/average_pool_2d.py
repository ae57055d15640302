"""AVERAGE_POOL_2D: the mean of each window."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tvm_serenity.kernels.records import AveragePool, Requantise
from tvm_serenity.operators.extents import of_the_batch
from tvm_serenity.operators.parts import IntegerMeaning, LayerFacts, Rows, ShapeMeaning, Storage
from tvm_serenity.operators.record import Operator, int8_scratch
from tvm_serenity.operators.scene import Array, Calls, Expr, Scene, Shape, Stored
from tvm_serenity.operators.weighted import requantised
from tvm_serenity.operators.windows import cut, pooled_by_rows, read_windows
from tvm_serenity.quantize.fixed import multiplier


def _scratch(shapes: Sequence[Shape], _made: Shape) -> int:
    """Return the bytes of scratch: one int32 per channel."""
    return 4 * shapes[0][-1]


def _read(scene: Scene) -> AveragePool:
    op = read_windows(scene)
    return AveragePool(
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


def to_scale(spec: AveragePool, source: Stored, result: Stored, rounding: str) -> AveragePool:
    """Return an average over full windows, including padding, with the scale of ``result``."""
    count = spec.window[0] * spec.window[1]
    finish = Requantise(
        multiplier(source.scale / (result.scale * count)),
        result.zero,
        spec.low,
        spec.high,
        result.dtype,
        rounding,
    )
    return replace(spec, zero_point=source.zero, requantise=finish)


def _compute(op: AveragePool, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels.pooling import average_pool

    return calls.kernel("q_avg_pool", average_pool(op), *values)


def _reference(op: AveragePool, x: Array) -> Array:
    """Return sums divided by their count; halves round away from zero, for uint8 up."""
    image = x if op.layout == "NHWC" else np.moveaxis(x, 1, 3)
    made = _averages(op, image.astype(np.int64))
    return made if op.layout == "NHWC" else np.moveaxis(made, 3, 1)


def _averages(op: AveragePool, x: Array) -> Array:
    elements, inside = cut(x - op.zero_point, op.window, op.strides, op.padding)
    total, count = elements.sum((-2, -1)), inside.sum((-2, -1))
    if op.requantise is not None:
        return requantised(total, op.requantise)
    half = count // 2
    sign = 1 if op.dtype == "uint8" else np.where(total > 0, 1, -1)
    mean = sign * ((sign * total + half) // count)
    return np.asarray(np.clip(mean, op.low, op.high)).astype(op.dtype)


OPERATORS = (
    Operator(
        kinds=("AVERAGE_POOL_2D",),
        shapes=ShapeMeaning(result=of_the_batch),
        relax=("nn.avg_pool2d",),
        relay=("nn.avg_pool2d",),
        rows=Rows(needs=pooled_by_rows, summed=True),
        layer=LayerFacts(channel=3),
        storage=Storage(scratch=int8_scratch(1, _scratch)),
        integers=IntegerMeaning(read=_read, compute=_compute, reference=_reference, in_float=True),
    ),
    Operator(kinds=("AveragePool",), layer=LayerFacts(channel=1)),
)
