"""SignalFilterBankLog: scaled natural logarithms of channels, from TFLM's signal library.

The fraction of the binary logarithm is interpolated linearly in a table of 128 segments.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log, log2

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.parts import IntegerMeaning
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Array, Calls, Expr, Scene

SEGMENTS = 128
TABLE = tuple(
    floor((log2(1 + i / SEGMENTS) - i / SEGMENTS) * 65536 + 0.5) for i in range(SEGMENTS + 1)
)
"""log2(1 + x) - x at the ends of the segments, in units of 1/65536."""
LN_2 = round(log(2) * 65536)


@dataclass(frozen=True)
class Log:
    """Logarithms of ``channels`` shifted left by ``bits``, times ``scale``."""

    channels: int
    bits: int
    scale: int


def _read(scene: Scene) -> Log:
    shape = scene.shape(0)
    scene.types(("uint32",), ("int16",))
    bits, scale = scene.option("input_correction_bits"), scene.option("output_scale")
    if len(shape) != 1 or scene.results[0].shape != shape:
        raise UnsupportedError(f"{scene.kind} of a tensor of shape {list(shape)} is not supported")
    if not 0 <= bits < 32:
        raise UnsupportedError(
            f"{scene.kind}: its input_correction_bits {bits} must be from 0 to 31"
        )
    return Log(shape[0], bits, scale % 2**32)


def _compute(op: Log, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels.signal_levels import logarithm

    table = np.array(TABLE, np.uint16)
    return calls.kernel("q_log_scaled", logarithm(op.channels, op.bits, op.scale), *values, table)


def _reference(op: Log, x: Array) -> Array:
    given = (x.astype(np.int64) << op.bits) % 2**32
    made = [_log(int(value), op.scale) if value > 1 else 0 for value in given]
    return np.array(made, np.int16)


def _log(value: int, scale: int) -> int:
    whole = value.bit_length() - 1
    rest = value - (1 << whole)
    fraction = (rest << 16) >> whole
    segment, within = divmod(fraction, 65536 // SEGMENTS)
    rise = (TABLE[segment + 1] - TABLE[segment]) * within >> 16
    base2 = (whole << 16) + fraction + TABLE[segment] + rise
    natural = (LN_2 * base2 + 32768) >> 16
    return min(((scale * natural + 32768) % 2**32) >> 16, 32767)


OPERATORS = (
    Operator(
        kinds=("SignalFilterBankLog",),
        integers=IntegerMeaning(exact=True, read=_read, compute=_compute, reference=_reference),
    ),
)
