"""Sums of two 8-bit tensors as one linear form, rounded to the nearest with SHIFT bits off:
``(x * first + y * second + constant + HALF) >> SHIFT``.

An operand has 256 values, so all pairs are tried when the kernel is made: the form is taken where
it is what LiteRT's reference makes of every pair.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from tvm_serenity.kernels.records import Sum
from tvm_serenity.quantize.fixed import Multiplier, scaled

SHIFT = 22
"""Bits below the result in ``library/linear.h``: what is left holds twice the results' range."""
HALF = (1 << 15) + (1 << 21)
"""What is added before the shift: halves of a shift by 16 and of one by 6 after it."""
WORD_LIMIT = 1 << 31
NEARBY = (0, -1, 1)
"""Factors that are tried around the nearest ones."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Linear:
    """The form's numbers."""

    first: int
    second: int
    constant: int


def linear_form(spec: Sum) -> Linear | None:
    """Return the form of a sum, rounded as TFLite rounds, or None where there is none."""
    pair = spec.pair
    limits = np.iinfo(pair.result.dtype)
    types = {source.dtype for source in pair.sources} | {pair.result.dtype}
    if (pair.low, pair.high) != (limits.min, limits.max) or len(types) > 1:
        return None
    values = np.arange(limits.min, limits.max + 1, dtype=np.int64)
    right = signed(spec.right)
    total = _operand(spec, values, 0, spec.left)[:, None] + _operand(spec, values, 1, right)
    made = scaled(total, spec.out.value[0], spec.out.shift[0]) + pair.result.zero_point
    made = np.clip(made, pair.low, pair.high)
    unit = _real(spec.out) * 2.0 ** (spec.shift + SHIFT)
    near = [round(_real(m) * unit) for m in (spec.left, right)]
    for more in product(NEARBY, NEARBY):
        first, second = near[0] + more[0], near[1] + more[1]
        form = _with_constant(first, second, values, made)
        if form is not None:
            return form
    return None


def _operand(spec: Sum, values: Ints, index: int, m: Multiplier) -> Ints:
    zero = spec.pair.sources[index].zero_point
    return scaled((values - zero) << spec.shift, m.value[0], m.shift[0])


def _with_constant(first: int, second: int, values: Ints, made: Ints) -> Linear | None:
    """The form with a constant that makes every result ``made`` of pairs of ``values``."""
    products = first * values[:, None] + second * values
    low, high = values[0], values[-1]
    above = ((made << SHIFT) - products)[made > low]
    below = (((made + 1) << SHIFT) - 1 - products)[made < high]
    if not above.size or not below.size or above.max() > below.min():
        return None
    constant = int(above.max() + below.min()) // 2 - HALF
    most = int(np.abs(products).max()) + abs(constant) + HALF
    return Linear(first, second, constant) if most < WORD_LIMIT else None


def _real(m: Multiplier) -> float:
    return float(m.value[0]) * 2.0 ** (m.shift[0] - 31)


def signed(right: Multiplier) -> Multiplier:
    """The second multiplier, below 0 where it is subtracted."""
    minus = right.real[0] < 0
    return Multiplier((-right.value[0],), right.shift, right.real) if minus else right
