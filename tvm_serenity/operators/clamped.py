"""Conversion of centred values to stored values."""

import numpy as np

from tvm_serenity.operators.scene import Array, Stored


def clamped(centred: Array, result: Stored, limits: tuple[int, int] | None = None) -> Array:
    """Return ``centred`` plus the zero point of ``result``, clamped to limits, in its type."""
    low, high = result.params.limits if limits is None else limits
    return np.asarray(np.clip(centred + result.zero, low, high)).astype(result.dtype)
