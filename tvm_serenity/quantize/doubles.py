"""Integer multipliers that round exactly as a product in float64 does.

LiteRT's reference FULLY_CONNECTED computes ``round(sum * real)`` in float64, halves away from
zero. Both that and the integer form ``single`` grow with the sum, so that they are equal for all
sums if they are on both sides of every step of the result: which is checked here, step by step.
"""

import numpy as np
import numpy.typing as npt

from tvm_serenity.quantize.fixed import Multiplier, multiplier

_TRIES = (0, 1, -1, 2, -2, 3, -3)
_LIMITS = np.iinfo(np.int32)
_STEPS = 1 << 12
"""Largest number of steps that are checked one by one."""


def exact_single(reals: npt.NDArray[np.float64], low: int, high: int) -> Multiplier | None:
    """Return multipliers for ``single`` whose results between ``low`` and ``high`` are exact.

    ``low`` and ``high`` are without the zero point; results beyond are clamped. None if there are
    no such multipliers near ``reals``.
    """
    if high - low > _STEPS:
        return None
    approximate = multiplier(reals.tolist())
    values, shifts = (
        np.asarray(approximate.value, np.int64),
        np.asarray(approximate.shift, np.int64),
    )
    left = np.ones(len(values), bool)
    for step in _TRIES:
        tried = values[left] + step
        wrong = _differ(reals[left], tried, shifts[left], low, high)
        values[np.flatnonzero(left)[~wrong]] = tried[~wrong]
        left[np.flatnonzero(left)[~wrong]] = False
        if not left.any():
            return Multiplier(tuple(int(v) for v in values), approximate.shift, approximate.real)
    return None


def _differ(
    reals: npt.NDArray[np.float64],
    values: npt.NDArray[np.int64],
    shifts: npt.NDArray[np.int64],
    low: int,
    high: int,
) -> npt.NDArray[np.bool_]:
    """Return, by channel, whether any sum next to a step of the result is rounded differently."""
    wrong = np.zeros(len(reals), bool)
    for first in range(0, len(reals), 256):
        part = slice(first, first + 256)
        real = reals[part, None]
        edges = (np.arange(low - 1, high + 1) + 0.5) / real
        sums = np.floor(edges)[:, :, None] + np.arange(-1, 3)
        sums = np.clip(sums, _LIMITS.min, _LIMITS.max).astype(np.int64).reshape(len(real), -1)
        right = 31 - shifts[part, None]
        single = (sums * values[part, None] + (np.int64(1) << (right - 1))) >> right
        same = np.clip(single, low, high) == np.clip(in_double(sums, real), low, high)
        wrong[part] = ~same.all(axis=1)
    return wrong


def in_double(sums: npt.NDArray[np.int64], real: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return ``sums * real`` rounded in float64, halves away from zero."""
    product = sums.astype(np.float64) * real
    truncated = np.trunc(product)
    up = np.abs(product - truncated) >= 0.5
    limited = np.clip(truncated + np.copysign(up, product), _LIMITS.min, _LIMITS.max)
    return np.asarray(limited.astype(np.int64))
