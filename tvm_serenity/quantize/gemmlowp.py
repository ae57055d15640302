"""Functions of gemmlowp's fixed point, on numpy arrays of raw values in 64 bits.

``Qm.n`` are ``m`` bits of integer and ``n`` of fraction beside the sign, 31 in all.
"""

import numpy as np
import numpy.typing as npt

from tvm_serenity.quantize.fixed import divided_by_power, high_product

Raw = npt.NDArray[np.int64]
LEAST, MOST = -(1 << 31), (1 << 31) - 1

EXP_EIGHTH, THIRD = 1895147668, 715827883
"""``exp(-1/8)`` and 1/3, as Q0.31."""
POWERS = (
    (-2, 1672461947),
    (-1, 1302514674),
    (0, 790015084),
    (1, 290630308),
    (2, 39332535),
    (3, 720401),
    (4, 242),
)
"""``exp(-2**n)`` by ``n``, as Q0.31."""
QUOTIENT = (1515870810, -1010580540)
"""48/17 and -32/17, as Q2.29: the start of Newton's division."""


def saturated(x: npt.ArrayLike) -> Raw:
    """Return ``x`` limited to 32 bits."""
    return np.asarray(np.clip(x, LEAST, MOST), np.int64)


def leading_zeros(x: npt.ArrayLike) -> Raw:
    """Return the number of zeros before the highest bit of positive 32-bit values; 32 for 0."""
    return 32 - np.frexp(np.asarray(x, np.float64))[1].astype(np.int64)


def exp_on_negative(a: Raw) -> Raw:
    """Return ``exp`` of Q5.26 values up to 0, as Q0.31 (``exp_on_negative_values``)."""
    quarter = 1 << 24
    mod = (a & (quarter - 1)) - quarter
    result = _exp_between(mod << 5)
    remainder = mod - a
    for exponent, factor in POWERS:
        bit = 1 << (26 + exponent)
        result = np.where(remainder & bit, high_product(result, factor), result)
    return np.where(a == 0, MOST, result)


def _exp_between(a: Raw) -> Raw:
    """Return exp on [-1/4, 0) in Q0.31, by the Taylor series at -1/8."""
    x = a + (1 << 28)
    x2 = high_product(x, x)
    x3, x4 = high_product(x2, x), high_product(x2, x2)
    x4_over_4 = divided_by_power(x4, 2)
    rest = divided_by_power(high_product(x4_over_4 + x3, THIRD) + x2, 1)
    return np.minimum(EXP_EIGHTH + high_product(EXP_EIGHTH, x + rest), MOST)


def reciprocal_of_one_plus(x: Raw) -> Raw:
    """Return ``1 / (1 + x)`` of Q0.31 values from 0, as Q0.31: three steps of Newton's method."""
    half = (x + (1 << 31)) >> 1
    guess = QUOTIENT[0] + high_product(half, QUOTIENT[1])
    for _ in range(3):
        rest = (1 << 29) - high_product(half, guess)
        guess = saturated(guess + saturated(high_product(guess, rest) << 2))
    return saturated(guess << 1)


def reciprocal(x: Raw, integers: int) -> tuple[Raw, Raw]:
    """Return the reciprocal of positive values and its exponent (``GetReciprocal``).

    ``x`` has ``integers`` bits of integer and is ``(1 + f) * 2**n``: the results are
    ``1 / (1 + f)`` in Q0.31 and ``n``.
    """
    zeros = leading_zeros(x)
    return reciprocal_of_one_plus((x << zeros) - (1 << 31)), integers - zeros


_SQRT_HALF, _SQRT_SQRT_HALF, _LOG_2 = 1518500250, 1805811301, 1488522236


def log_from_one(x: Raw, integers: int, result_integers: int) -> Raw:
    """Return ``log`` of values from 1 (``log_x_for_x_greater_than_or_equal_to_1``).

    ``x`` has ``integers`` bits of integer, the result ``result_integers``. The value is a power of
    two times ``r``, with or without the root of 1/2, whichever ``r`` is smaller.
    """
    room = 30 - result_integers  # one more integer bit than the result, for the sum
    quarter = 1 << (room - 2)
    zeros = leading_zeros(x)
    first = saturated(high_product(saturated(x << (zeros - 1)), _SQRT_HALF) << 1)
    first_power = saturated(((integers - zeros) << room) + quarter)
    head = leading_zeros(high_product(x, _SQRT_HALF)) - 1
    second = saturated(x << head)
    second_power = saturated(((integers - head) << room) - quarter)

    r, power = np.minimum(first, second), np.maximum(first_power, second_power)
    total = r + _SQRT_SQRT_HALF
    p = np.trunc((total + np.where(total >= 0, 1, -1)) / 2).astype(np.int64)
    q = (r - _SQRT_SQRT_HALF) * 2
    square = high_product(q, q)
    over = high_product(q, r) + high_product(high_product(q, square), 117049297)
    under = high_product(p, 1057819769 + q + high_product(127690142, square))
    under = under + high_product(638450708, q)
    quotient = high_product(divided_by_power(over, 31 - room), reciprocal_of_one_plus(under))
    return saturated((high_product(power, _LOG_2) + quotient) << 1)
