"""What every entry of a table may be, computed apart from what fills the table.

A table of 8 bits holds a function's result for every stored value. Its real function is evaluated
here in float64, or its arithmetic in exact integers (``quantize.exact``), and each entry must be
the nearest stored value: where float32 decides between two, either.
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
"""Steps from a half, and the part of a value, within which float32 may round to either side."""

EXPONENTIAL_ERROR = 1024
"""Of gemmlowp's fixed-point exponentials in units of 2**-31: 484 at most on 300 drawn scales."""


@dataclass(frozen=True, eq=False)
class EntryBounds:
    """The least and the largest entry for each stored value, before limits are applied."""

    low: Array
    high: Array

    def limited(self, least: int, most: int) -> "EntryBounds":
        """Return the bounds of entries that are clamped to ``least``..``most``."""
        return EntryBounds(np.clip(self.low, least, most), np.clip(self.high, least, most))


def reals(source: Affine) -> Array:
    """Return the number that each stored value stands for, from the least value on."""
    return source.scale * _centred(source).astype(np.float64)


def nearest(of: Real, source: Affine, result: Affine, slack: float = NEAR_TIE) -> EntryBounds:
    """Return the entries of a real function, rounded with halves away from zero."""
    with np.errstate(all="ignore"):
        value = np.asarray(of(reals(source)), np.float64) / result.scale
    return _around(value, result, slack, lambda x: np.trunc(x + np.copysign(0.5, x)))


def cut_off(of: Real, source: Affine, result: Affine) -> EntryBounds:
    """Return the entries of a real function that are cut off towards 0."""
    return _around(of(reals(source)) / result.scale, result, NEAR_TIE, np.trunc)


def scaled_by(
    ratios: tuple[float, float], source: Affine, result: Affine, size: bool = False
) -> EntryBounds:
    """Return the entries of values times ``ratios``: of those below 0, and of the others.

    The products are rounded as LiteRT does it in integers. ``size``: of their absolute values.
    """
    x = _centred(source)
    made = np.zeros(x.shape, np.int64)
    for ratio, chosen in zip(ratios, (x < 0, x >= 0), strict=True):
        m = multiplier(abs(ratio))
        found, _ = multiplied(np.abs(x) if size else x, m.value[0], m.shift[0], TWICE)
        made = np.where(chosen, found if ratio >= 0 else -found, made)
    return EntryBounds(made + result.zero_point, made + result.zero_point)


def check_table(kind: str, table: Array, source: Affine, bounds: EntryBounds) -> Array:
    """Return ``table``; raise :class:`WrongResultError` naming the first wrong entry."""
    entries = table.astype(np.int64)
    wrong = np.flatnonzero((entries < bounds.low) | (entries > bounds.high))
    if wrong.size:
        at = int(wrong[0])
        low, high = int(bounds.low[at]), int(bounds.high[at])
        right = f"{low}" if low == high else f"{low} to {high}"
        raise WrongResultError(
            f"{kind}: entry {at} of its table, for the stored value "
            f"{source.limits[0] + at}, is {entries[at]}; it must be {right} "
            f"({wrong.size} of {entries.size} entries are wrong)"
        )
    return table


def check_exponentials(kind: str, table: Array, scale: float) -> Array:
    """Return exponentials of ``-d * scale`` in Q0.31; raise where one is not within its error."""
    real = np.exp(-scale * np.arange(table.size)) * 2.0**31
    off = np.abs(table - real)
    off[-1] = 0 if table[-1] == 0 else off[-1]  # stands for all that follow
    at = int(off.argmax())
    if off[at] > EXPONENTIAL_ERROR:
        raise WrongResultError(
            f"{kind}: entry {at} of its table of exponentials is {table[at]}; it must be "
            f"{real[at]:.0f}, or up to {EXPONENTIAL_ERROR} apart"
        )
    return table


def _centred(source: Affine) -> Array:
    low, high = source.limits
    return np.arange(low, high + 1) - source.zero_point


def _around(value: Array, result: Affine, slack: float, rounded: Real) -> EntryBounds:
    """The results of values that may be off by ``slack``; what is no number may be anything."""
    low, high = result.limits
    known = ~np.isnan(value)
    value = np.clip(np.where(known, value, 0), -(2.0**40), 2.0**40)
    off = slack + RELATIVE * np.abs(value)
    least = np.where(known, rounded(value - off) + result.zero_point, low)
    most = np.where(known, rounded(value + off) + result.zero_point, high)
    return EntryBounds(least.astype(np.int64), most.astype(np.int64))
