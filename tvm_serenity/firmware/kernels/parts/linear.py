"""Sums of two 8-bit tensors as one linear form, rounded to the nearest with ``shift`` bits off:
``(x * first + y * second + constant + half) >> shift``.

An operand has 256 values, so all pairs are tried when the kernel is generated: the form is used if
it equals the result of LiteRT's reference for every pair.
"""

from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
import numpy.typing as npt

from tvm_serenity.kernels.records import Sum
from tvm_serenity.quantize.fixed import Multiplier, scaled

SHIFTS = (22, 20)
"""Fraction bits in ``add_any/kernel.h``: more are more exact, fewer allow larger sums."""
WORD_LIMIT = 1 << 31
NEARBY = (0, -1, 1)
"""Offsets from the nearest factors that are tried."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Linear:
    """The factors and the constant of a linear form; ``shift``: its fraction bits."""

    first: int
    second: int
    constant: int
    shift: int


def half(shift: int) -> int:
    """Return the rounding constant of two shifts, by ``shift - 6`` and by 6 bits."""
    return (1 << shift - 7) + (1 << shift - 1)


@cache
def linear_form(spec: Sum) -> Linear | None:
    """Return the linear form that equals a sum of TFLite, None if no form does."""
    pair = spec.pair
    limits = np.iinfo(pair.result.dtype)
    types = {source.dtype for source in pair.sources} | {pair.result.dtype}
    if (pair.low, pair.high) != (limits.min, limits.max) or len(types) > 1:
        return None
    values = np.arange(limits.min, limits.max + 1, dtype=np.int64)
    right = signed(spec.right)
    total = _operand(spec, values, 0, spec.left)[:, None] + _operand(spec, values, 1, right)
    result = scaled(total, spec.out.value[0], spec.out.shift[0]) + pair.result.zero_point
    result = np.clip(result, pair.low, pair.high)
    for shift in SHIFTS:
        unit = _real(spec.out) * 2.0 ** (spec.shift + shift)
        near = [round(_real(m) * unit) for m in (spec.left, right)]
        for more in product(NEARBY, NEARBY):
            factors = near[0] + more[0], near[1] + more[1]
            form = _with_constant(*factors, shift, values, result)
            if form is not None:
                return form
    return None


def _operand(spec: Sum, values: Ints, index: int, m: Multiplier) -> Ints:
    zero = spec.pair.sources[index].zero_point
    return scaled((values - zero) << spec.shift, m.value[0], m.shift[0])


def _with_constant(
    first: int, second: int, shift: int, values: Ints, result: Ints
) -> Linear | None:
    """Return the form with the constant that gives ``result`` for all pairs, or None."""
    products = first * values[:, None] + second * values
    low, high = values[0], values[-1]
    above = ((result << shift) - products)[result > low]
    below = (((result + 1) << shift) - 1 - products)[result < high]
    if not above.size or not below.size or above.max() > below.min():
        return None
    constant = int(above.max() + below.min()) // 2 - half(shift)
    most = int(np.abs(products).max()) + abs(constant) + half(shift)
    return Linear(first, second, constant, shift) if most < WORD_LIMIT else None


def _real(m: Multiplier) -> float:
    return float(m.value[0]) * 2.0 ** (m.shift[0] - 31)


def signed(right: Multiplier) -> Multiplier:
    """Return the second multiplier, negative if the operand is subtracted."""
    minus = right.real[0] < 0
    return Multiplier((-right.value[0],), right.shift, right.real) if minus else right
