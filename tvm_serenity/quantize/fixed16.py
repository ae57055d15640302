"""Functions of 16-bit fixed-point values as gemmlowp computes them, here on numpy arrays.

A value with ``bits`` integer bits is a stored integer times ``2**(bits - 15)``. This is the
specification of ``kernels/fixed16.py``.
"""

import numpy as np
import numpy.typing as npt

from tvm_serenity.quantize import gemmlowp
from tvm_serenity.quantize.fixed import divided_by_power

Ints = npt.NDArray[np.int64]

ONE = 32767
"""The number one, rounded down, in a format without integer bits."""


def _narrowed(value: int) -> int:
    """Return a 32-bit constant rounded to 16 bits."""
    return (value + (1 << 15)) >> 16


EXP_EIGHTH, THIRD = _narrowed(gemmlowp.EXP_EIGHTH), _narrowed(gemmlowp.THIRD)
POWERS = tuple((exponent, _narrowed(factor)) for exponent, factor in gemmlowp.POWERS)
QUOTIENT = tuple(_narrowed(value) for value in gemmlowp.QUOTIENT)
"""What ``gemmlowp`` has in 32 bits."""
LEAST_EXPONENT = -32
"""``exp`` of smaller values is 0; only formats with more than five integer bits reach it."""


def product(a: npt.ArrayLike, b: npt.ArrayLike) -> Ints:
    """Return ``round(a * b / 2**15)``, halves up, saturated."""
    rounded = (np.asarray(a, np.int64) * np.asarray(b, np.int64) + (1 << 14)) >> 15
    return np.asarray(np.minimum(rounded, ONE))


def exp_on_negative(a: npt.ArrayLike, bits: int) -> Ints:
    """Return ``exp(a)`` for ``a <= 0`` with ``bits`` integer bits."""
    a = np.asarray(a, np.int64)
    quarter = 1 << (13 - bits)
    within = (a & (quarter - 1)) - quarter
    x = (within << bits) + (1 << 12)
    x2 = product(x, x)
    x3, x4 = product(x2, x), divided_by_power(product(x2, x2), 2)
    terms = divided_by_power(product(x4 + x3, THIRD) + x2, 1)
    result = np.minimum(EXP_EIGHTH + product(EXP_EIGHTH, x + terms), ONE)
    rest = within - a
    for exponent, factor in POWERS:
        if bits > exponent:
            has = rest >> (15 - bits + exponent) & 1
            result = np.where(has, product(result, factor), result)
    result = np.where(a < LEAST_EXPONENT << (15 - bits), 0, result)
    return np.asarray(np.where(a == 0, ONE, result))


def logistic(a: npt.ArrayLike, bits: int = 3) -> Ints:
    """Return ``1 / (1 + exp(-a))`` in a format without integer bits."""
    a = np.asarray(a, np.int64)
    positive = np.minimum(_double_inverse(exp_on_negative(-np.abs(a), bits)) << 1, ONE)
    signed = np.where(a > 0, positive, ONE - positive)
    return np.asarray(np.where(a == 0, 1 << 14, signed))


def tanh(a: npt.ArrayLike, bits: int) -> Ints:
    """Return ``tanh(a)`` in a format without integer bits."""
    a = np.asarray(a, np.int64)
    powers = exp_on_negative(-np.abs(a), bits + 1)
    size = np.minimum((_double_inverse(powers) - (1 << 13)) << 2, ONE)
    return np.asarray(np.sign(a) * size)


def _double_inverse(a: Ints) -> Ints:
    """Return ``2 / (1 + a)`` with two integer bits, for ``a`` from 0 to 1 without integer bits."""
    half = (a + ONE + 1) >> 1
    x = QUOTIENT[0] + product(half, QUOTIENT[1])
    for _ in range(3):
        x = x + (product(x, (1 << 13) - product(half, x)) << 2)
    return x
