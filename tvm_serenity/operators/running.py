"""Sums of many 8-bit values: TFLM shifts them left and adds them in half their scale."""

import numpy as np

from tvm_serenity.kernels.records import Requantise
from tvm_serenity.operators.scene import Array, Stored
from tvm_serenity.quantize.fixed import multiplier

SHIFT = 19
"""Left shift of 20 bits, then an exact halving."""


def finish_of(source: Stored, result: Stored, rounding: str) -> Requantise:
    """Return the requantization of sums that were shifted left by ``SHIFT``."""
    m = multiplier(2 * source.scale / ((1 << (SHIFT + 1)) * result.scale))
    how = "tflite" if rounding == "float" else rounding
    return Requantise(m, result.zero, *result.params.limits, result.dtype, how)


def wrapped(value: Array) -> Array:
    """Return 64-bit integers wrapped to 32 bits."""
    return np.asarray(value).astype(np.int32).astype(np.int64)
