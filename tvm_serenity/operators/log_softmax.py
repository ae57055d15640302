"""LOG_SOFTMAX of 8 bits, in gemmlowp's fixed point (``LogSoftmaxQuantized``)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.clamped import clamped
from tvm_serenity.operators.extents import as_the_first
from tvm_serenity.operators.parts import IntegerMeaning, ShapeMeaning
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import EIGHT, Array, Calls, Expr, Scene, Stored, flat
from tvm_serenity.operators.softmax import differences, least_difference
from tvm_serenity.operators.table_bounds import check_differences, check_exponentials
from tvm_serenity.quantize import tables
from tvm_serenity.quantize.fixed import divided_by_power, multiplier, scaled
from tvm_serenity.quantize.gemmlowp import LEAST, exp_on_negative, log_from_one


@dataclass(frozen=True)
class LogSoftmax:
    """A log softmax along the last axis; its result has steps of 1/16, up to 0."""

    source: Stored
    result: Stored


def _read(scene: Scene) -> LogSoftmax:
    (source,), result = scene.inputs(), scene.result()
    scene.only(EIGHT, source, result)
    if result.scale != 1 / 16 or result.zero != result.params.limits[1]:
        raise UnsupportedError(
            f"LOG_SOFTMAX needs a result with scale 1/16, not {result.scale:g}, and the "
            "largest value as zero point"
        )
    return LogSoftmax(source, result)


def _compute(op: LogSoftmax, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels import normalise

    scale, (rows, columns) = op.source.scale, flat(op.source.shape)
    steps, least = tables.differences(scale)
    m = multiplier(min(scale * (1 << 26), float((1 << 31) - 1)))
    reverse = multiplier(2.0 ** (31 - m.shift[0]) / m.value[0])
    kernel = normalise.log_softmax(rows, columns, op.source.dtype, reverse, least)
    powers = np.asarray(tables.softmax(scale).exponentials, np.int32)
    check_exponentials("LOG_SOFTMAX", powers, scale)
    check_differences("LOG_SOFTMAX", steps, scale)
    made = calls.kernel(
        "q_log_softmax",
        kernel,
        calls.apply("reshape", values[0], (rows, columns)),
        powers,
        steps.astype(np.int32),
    )
    return calls.apply("reshape", made, op.source.shape)


def _reference(op: LogSoftmax, x: Array) -> Array:
    """``reference_integer_ops::LogSoftmax``.

    Results too far below the maximum are the least value.
    """
    below = x.astype(np.int64) - x.max(-1, keepdims=True)
    made, shift = differences(below, op.source.scale)
    least = least_difference(shift)
    counts = below >= least
    power = np.where(counts, exp_on_negative(np.where(counts, made, 0)), 0)
    log = log_from_one(divided_by_power(power, 12).sum(-1, keepdims=True), 12, 5)
    m = multiplier(min(op.source.scale * (1 << 26), float((1 << 31) - 1)))
    back = multiplier(2.0 ** (31 - shift) / m.value[0])
    limit = np.maximum(least - 1, scaled(log + LEAST, back.value[0], back.shift[0]))
    near = below > limit
    rest = divided_by_power(np.where(near, made - log, 0), 22)
    return clamped(np.where(near, rest, -256), op.result)


OPERATORS = (
    Operator(
        kinds=("LOG_SOFTMAX",),
        shapes=ShapeMeaning(result=as_the_first),
        integers=IntegerMeaning(read=_read, compute=_compute, reference=_reference),
    ),
)
