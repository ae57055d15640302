"""Bounds of table samples of 16-bit functions, computed independently of the tables.

16-bit functions are interpolated linearly between samples. LiteRT moves each sample by half of the
interpolation error in the middle of its segment. This module evaluates the real function in
float64; where float32 rounding decides between two integers, both are accepted.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tvm_serenity.errors import WrongResultError
from tvm_serenity.operators.scene import Array
from tvm_serenity.operators.table_bounds import NEAR_TIE, EntryBounds, Real

SAMPLES = 513
_LOW, _HIGH, _STEPS = -(1 << 15), (1 << 15) - 1, SAMPLES - 1
_ARGUMENT, _RELATIVE = 2.0**-22, 2.0**-21
"""Error of float32: relative to the largest argument, and to the function's value."""
_BEYOND = 2.0**127
"""The limit of float32 numbers."""
_SIGMOID_STEP = 1 / 24


@dataclass(frozen=True)
class SampledLine:
    """Scale and zero point of the 16-bit argument, and the scale of the result.

    ``lost``: the error of float32 where terms of the function cancel.
    """

    source: float
    result: float
    zero_point: int = 0
    lost: float = 0.0


def sample_bounds(functions: Sequence[Real], line: SampledLine) -> EntryBounds:
    """Return the bounds of the 513 samples of a real function.

    ``functions``: the function in each precision that may have filled the table. Samples beyond
    float32, or undefined in LiteRT, are unbounded.
    """
    first = line.source * (_LOW - line.zero_point)
    last = line.source * (_HIGH - line.zero_point)
    step = (last - first) / _STEPS
    places = first + np.arange(SAMPLES) * step
    samples, known = _near(functions, places, line)
    between, inside = _near(functions, places[:-1] + step / 2, line)
    low, high = (_rounded(value) for value in samples)
    middles = [_rounded(value) for value in between]
    straight = [
        _rounded((following[1:] + sample[:-1]) / 2)
        for following, sample in zip(samples, (low, high), strict=True)
    ]
    moved = [_rounded((straight[a] - middles[b]) / 2) for a, b in ((0, 1), (1, 0))]
    low[:-1] -= moved[1]
    high[:-1] -= moved[0]
    known[:-1] &= known[1:] & inside
    low, high = np.where(known, low, _LOW), np.where(known, high, _HIGH)
    return EntryBounds(*(np.clip(v, _LOW, _HIGH).astype(np.int64) for v in (low, high)))


def check_samples(kind: str, table: Array, bounds: EntryBounds) -> Array:
    """Return ``table``; raise :class:`WrongResultError` with the first wrong sample."""
    samples = table.astype(np.int64)
    wrong = bounds.first_wrong(samples)
    if wrong is not None:
        raise WrongResultError(
            f"{kind}: sample {wrong.index} of {samples.size} is {wrong.value}; expected "
            f"{wrong.right} ({wrong.count} samples are wrong)"
        )
    return table


def check_sigmoid(kind: str, table: Array) -> Array:
    """Return 256 samples of the logistic function; raise if one is not the nearest number.

    The samples are 1/24 apart in units of 2**-16, moved up by half of the interpolation error in
    the middle; the last one is the largest 16-bit number.
    """
    x = _SIGMOID_STEP * np.arange(-1, 257)
    value = 1 / (1 + np.exp(-x))
    bend = value[2:] - 2 * value[1:-1] + value[:-2]
    moved = 65536 * (value[1:-1] - bend / 16)
    low, high = np.ceil(moved - 0.5 - NEAR_TIE), np.floor(moved + 0.5 + NEAR_TIE)
    low[-1] = high[-1] = 65535
    return check_samples(kind, table, EntryBounds(low.astype(np.int64), high.astype(np.int64)))


def _near(functions: Sequence[Real], at: Array, line: SampledLine) -> tuple[list[Array], Array]:
    """Return the least and largest value of a function near ``at``, in steps of the result."""
    ends = line.source * np.array([_LOW - line.zero_point, _HIGH - line.zero_point])
    off, unit = _ARGUMENT * np.abs(ends).max(), (_HIGH - _LOW + 1) / (_HIGH - _LOW) / line.result
    with np.errstate(all="ignore"):
        found = np.array([f(at + by) for f in functions for by in (-off, 0.0, off)], np.float64)
        known = np.asarray((np.abs(found) * max(unit, 1.0) < _BEYOND).all(0))
    found = np.where(known, found, 0)
    low, high = found.min(0) * unit, found.max(0) * unit
    slack = NEAR_TIE + line.lost * unit
    return [low - slack - _RELATIVE * np.abs(low), high + slack + _RELATIVE * np.abs(high)], known


def _rounded(x: Array) -> Array:
    """Return ``x`` rounded, halves away from zero."""
    return np.asarray(np.trunc(x + np.copysign(0.5, x)))
