"""LOG_SOFTMAX of 8 bits, in gemmlowp's fixed point (``LogSoftmaxQuantized``)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import EIGHT, Calls, Expr, Scene, Stored, flat
from tvm_serenity.quantize import tables
from tvm_serenity.quantize.fixed import multiplier


@dataclass(frozen=True)
class LogSoftmax:
    """Along the last axis; the result is stored in steps of 1/16 up to 0."""

    source: Stored


def _read(scene: Scene) -> LogSoftmax:
    (source,), result = scene.inputs(), scene.result()
    scene.only(EIGHT, source, result)
    if result.scale != 1 / 16 or result.zero != result.params.limits[1]:
        raise UnsupportedError("LOG_SOFTMAX whose result is not stored in steps of 1/16 up to 0")
    return LogSoftmax(source)


def _compute(op: LogSoftmax, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels import normalise

    scale, (rows, columns) = op.source.scale, flat(op.source.shape)
    steps, least = tables.differences(scale)
    m = multiplier(min(scale * (1 << 26), float((1 << 31) - 1)))
    reverse = multiplier(2.0 ** (31 - m.shift[0]) / m.value[0])
    kernel = normalise.log_softmax(rows, columns, op.source.dtype, reverse, least)
    powers = np.asarray(tables.softmax(scale).exponentials, np.int32)
    made = calls.kernel(
        "q_log_softmax",
        kernel,
        calls.apply("reshape", values[0], (rows, columns)),
        powers,
        steps.astype(np.int32),
    )
    return calls.apply("reshape", made, op.source.shape)


OPERATORS = (Operator(kinds=("LOG_SOFTMAX",), read=_read, compute=_compute),)
