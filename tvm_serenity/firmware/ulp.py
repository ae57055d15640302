"""Distances between floats: in units in the last place, and where they add up."""

import numpy as np

from tvm_serenity.firmware.program import Array

ULP_LIMIT = 2
"""Units in the last place that float tensors may be off in C."""

ULP_LIMIT_LLVM = 8
"""The same for kernels compiled by LLVM, which contracts multiplications and additions."""

DRIFT = 1e-4
"""What a tensor of a whole network may be off, in parts of its largest: where kernels, each within
its limit, read each other's results, as the steps of a recurrent layer do."""


def close(got: Array, want: Array, limit_ulp: int, units: Array | None = None) -> bool:
    """Return whether float32 tensors of a whole network are the same but for rounding.

    ``units``: their ``ulps``, where they are known.
    """
    units = ulps(got, want) if units is None else units
    near = units <= limit_ulp
    if np.isfinite(want).all():
        apart = np.abs(got.astype(np.float64) - want.astype(np.float64))
        near |= apart <= DRIFT * float(np.abs(want).max(initial=0.0))
    return bool(near.all())


def ulps(a: Array, b: Array) -> Array:
    """Return the distance of float32 values, element by element, as int64."""
    return np.asarray(np.abs(_ordered(a) - _ordered(b)))


def _ordered(x: Array) -> Array:
    bits = np.asarray(x, order="C").view(np.int32).astype(np.int64)
    return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)
