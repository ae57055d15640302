"""What sums of many 8-bit values share: TFLM adds them in half their scale, shifted left."""

import numpy as np

from tvm_serenity.kernels.records import Requantise
from tvm_serenity.operators.scene import Array, Stored
from tvm_serenity.quantize.fixed import multiplier

SHIFT = 19
"""20 to the left, then halved, which is exact."""


def finish_of(source: Stored, result: Stored, rounding: str) -> Requantise:
    """Return how shifted sums are stored."""
    m = multiplier(2 * source.scale / ((1 << (SHIFT + 1)) * result.scale))
    how = "tflite" if rounding == "float" else rounding
    return Requantise(m, result.zero, *result.params.limits, result.dtype, how)


def wrapped(value: Array) -> Array:
    """Return 64-bit integers in 32 bits, where larger ones wrap."""
    return np.asarray(value).astype(np.int32).astype(np.int64)
