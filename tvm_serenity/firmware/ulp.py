"""Distances between floats in units in the last place."""

import numpy as np

from tvm_serenity.firmware.program import Array

ULP_LIMIT = 2
"""Units in the last place that float tensors may be off in C."""

ULP_LIMIT_LLVM = 8
"""The same for kernels compiled by LLVM, which contracts multiplications and additions."""


def ulps(a: Array, b: Array) -> Array:
    """Return the distance of float32 values, element by element, as int64."""
    return np.asarray(np.abs(_ordered(a) - _ordered(b)))


def _ordered(x: Array) -> Array:
    bits = np.ascontiguousarray(x).view(np.int32).astype(np.int64)
    return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)
