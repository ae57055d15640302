"""Bounds of table entries, computed independently of the code that fills the table.

A table of 8 bits holds a function's result for each stored value. This module evaluates the real
function in float64, or its arithmetic in exact integers (``quantize.exact``). Each entry must be
the nearest stored value; where float32 rounding decides between two, both are accepted.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tvm_serenity.errors import WrongResultError
from tvm_serenity.operators.scene import Array
from tvm_serenity.quantize.exact import TWICE, multiplied
from tvm_serenity.quantize.fixed import multiplier
from tvm_serenity.quantize.params import Affine

Real = Callable[[Array], Array]
NEAR_TIE, RELATIVE = 1e-3, 2.0**-20
"""Distance from a tie in steps, and relative error, within which float32 may round either way."""

_LEAST = 2.0**-126
"""The least normal number of float32; smaller numbers lose precision."""
INVERSE_ERROR = 5
"""Error of gemmlowp's reciprocals in units of 2**-31."""
EXPONENTIAL_ERROR = 1024
"""Error of gemmlowp's exponentials in units of 2**-31: at most 484 on 300 drawn scales."""


@dataclass(frozen=True)
class WrongEntry:
    """The first wrong entry of a table, its bounds as text, and how many entries are wrong."""

    index: int
    value: int
    right: str
    count: int


@dataclass(frozen=True, eq=False)
class EntryBounds:
    """The least and largest entry for each stored value, before limits apply."""

    low: Array
    high: Array

    def limited(self, least: int, most: int) -> "EntryBounds":
        """Return the bounds of entries clamped to ``least``..``most``."""
        return EntryBounds(np.clip(self.low, least, most), np.clip(self.high, least, most))

    def first_wrong(self, entries: Array) -> WrongEntry | None:
        """Return the first of ``entries`` outside of its bounds, None where all are within."""
        wrong = np.flatnonzero((entries < self.low) | (entries > self.high))
        if not wrong.size:
            return None
        at = int(wrong[0])
        low, high = int(self.low[at]), int(self.high[at])
        right = f"{low}" if low == high else f"{low} to {high}"
        return WrongEntry(at, int(entries[at]), right, wrong.size)


def reals(source: Affine) -> Array:
    """Return the real number of each stored value, from the least value on."""
    return source.scale * _centred(source).astype(np.float64)


def nearest(of: Real, source: Affine, result: Affine, slack: float = NEAR_TIE) -> EntryBounds:
    """Return the entries of a real function, rounded with halves away from zero."""
    with np.errstate(all="ignore"):
        value = np.asarray(of(reals(source)), np.float64) / result.scale
    return _around(value, result, slack, lambda x: np.trunc(x + np.copysign(0.5, x)))


def cut_off(of: Real, source: Affine, result: Affine) -> EntryBounds:
    """Return the entries of a real function, truncated towards 0."""
    return _around(of(reals(source)) / result.scale, result, NEAR_TIE, np.trunc)


def scaled_by(
    ratios: tuple[float, float], source: Affine, result: Affine, size: bool = False
) -> EntryBounds:
    """Return the entries of values times ``ratios``: for negative values, and for the others.

    Products are rounded as in LiteRT's integers. ``size``: the magnitude of the values.
    """
    x = _centred(source)
    made = np.zeros(x.shape, np.int64)
    for ratio, chosen in zip(ratios, (x < 0, x >= 0), strict=True):
        m = multiplier(abs(ratio))
        found, _ = multiplied(np.abs(x) if size else x, m.value[0], m.shift[0], TWICE)
        made = np.where(chosen, found if ratio >= 0 else -found, made)
    return EntryBounds(made + result.zero_point, made + result.zero_point)


def check_table(kind: str, table: Array, source: Affine, bounds: EntryBounds) -> Array:
    """Return ``table``; raise :class:`WrongResultError` with the first wrong entry."""
    entries = table.astype(np.int64)
    wrong = bounds.first_wrong(entries)
    if wrong is not None:
        raise WrongResultError(
            f"{kind}: entry {wrong.index} of its table, for the stored value "
            f"{source.limits[0] + wrong.index}, is {wrong.value}; expected {wrong.right} "
            f"({wrong.count} of {entries.size} entries are wrong)"
        )
    return table


def check_exponentials(kind: str, table: Array, scale: float) -> Array:
    """Return exponentials of ``-d * scale`` in Q0.31; raise if one exceeds its error."""
    real = np.exp(-scale * np.arange(table.size)) * 2.0**31
    off = np.abs(table - real)
    off[-1] = 0 if table[-1] == 0 else off[-1]  # the last entry is used for all larger distances
    at = int(off.argmax())
    if off[at] > EXPONENTIAL_ERROR:
        raise WrongResultError(
            f"{kind}: entry {at} of its table of exponentials is {table[at]}; expected "
            f"{real[at]:.0f} within {EXPONENTIAL_ERROR}"
        )
    return table


def check_real_exponentials(kind: str, table: Array, scale: float) -> Array:
    """Return exponentials of ``-d * scale`` in float32; raise if one is inaccurate."""
    real = np.exp(-scale * np.arange(table.size))
    wrong = np.flatnonzero(np.abs(table.astype(np.float64) - real) > RELATIVE * real + _LEAST)
    if wrong.size:
        at = int(wrong[0])
        raise WrongResultError(
            f"{kind}: entry {at} of its table of exponentials is {table[at]}; expected {real[at]}"
        )
    return table


def check_differences(kind: str, steps: Array, scale: float) -> Array:
    """Return ``-d * scale`` in Q5.26 for all differences; raise if one differs from LiteRT.

    Values beyond 32 bits stand for an exponential of 0.
    """
    m = multiplier(min(scale * (1 << 26), float((1 << 31) - 1)))
    right, inside = multiplied(-np.arange(steps.size), m.value[0], m.shift[0], TWICE)
    wrong = np.flatnonzero(inside & (steps != right))
    if wrong.size:
        at = int(wrong[0])
        raise WrongResultError(
            f"{kind}: entry {at} of its table of differences is {steps[at]}; expected {right[at]}"
        )
    return steps


def check_inverses(kind: str, inverse: Array, power: Array, divisor: Affine) -> None:
    """Raise unless ``inverse * 2**(-31 - power)`` is the reciprocal of each divisor, and 1 for 0.

    ``power`` is exact, ``inverse`` within the error of Newton's method.
    """
    sizes = [max(abs(int(x)), 1) for x in _centred(divisor)]
    for at, size in enumerate(sizes):
        exact = size.bit_length() - 1
        real = (1 << (31 + exact)) / size
        if power[at] != exact or abs(int(inverse[at]) - real) > INVERSE_ERROR:
            raise WrongResultError(
                f"{kind}: entry {at} of its table of inverses is {inverse[at]} and "
                f"{power[at]}; expected {real:.0f} within {INVERSE_ERROR}, and {exact}"
            )


def check_dividends(kind: str, shifted: Array, room: Array, dividend: Affine) -> None:
    """Raise unless each dividend and its negation are shifted left as far as 32 bits allow."""
    values = [int(x) for x in _centred(dividend)]
    for at, value in enumerate((*values, *(-x for x in values))):
        exact = 31 - (value if value >= 0 else ~value).bit_length()
        if room[at] != exact or shifted[at] != value << exact:
            raise WrongResultError(
                f"{kind}: entry {at} of its table of dividends is {shifted[at]} and "
                f"{room[at]}; expected {value << exact} and {exact}"
            )


def either(one: EntryBounds, other: EntryBounds) -> EntryBounds:
    """Return the bounds of entries that satisfy one or the other bounds."""
    return EntryBounds(np.minimum(one.low, other.low), np.maximum(one.high, other.high))


def _centred(source: Affine) -> Array:
    low, high = source.limits
    return np.arange(low, high + 1) - source.zero_point


def _around(value: Array, result: Affine, slack: float, rounded: Real) -> EntryBounds:
    """Return the results of values with an error of ``slack``; NaN allows any result."""
    low, high = result.limits
    known = ~np.isnan(value)
    value = np.clip(np.where(known, value, 0), -(2.0**40), 2.0**40)
    off = slack + RELATIVE * np.abs(value)
    least = np.where(known, rounded(value - off) + result.zero_point, low)
    most = np.where(known, rounded(value + off) + result.zero_point, high)
    return EntryBounds(least.astype(np.int64), most.astype(np.int64))
