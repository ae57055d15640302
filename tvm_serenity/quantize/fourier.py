"""Constants of Fourier transforms in fixed point, and the transforms in numpy.

Source: kissfft's documented arithmetic: fractions of 15 or 31 bits, products rounded halves up,
each stage divided by its factor.
"""

from math import cos, pi, sin
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

FRACTION = {"int16": 15, "int32": 31}
WIDE = {"int16": "int32", "int32": "int64", "float32": "float32"}
"""The type in which products of a stored type are computed."""


def factors(n: int) -> list[int]:
    """Return the factors of a power of two in the order of division: 4s, then at most one 2."""
    parts = []
    while n > 1:
        parts.append(4 if n % 4 == 0 else 2)
        n //= parts[-1]
    return parts


def roots(n: int, dtype: str, inverse: bool) -> Array:
    """Return the twiddle factors, the ``n`` complex roots of unity: (n, 2), real and imaginary."""
    return _circle(-2 * pi * np.arange(n) / n, dtype, inverse)


def turns(n: int, dtype: str, inverse: bool) -> Array:
    """Return the factors from a spectrum of ``n`` complex to one of ``2 n`` real numbers."""
    steps = np.arange(1, max(n // 2, 1) + 1)
    return _circle(-pi * (steps / n + 0.5), dtype, inverse)


def _circle(phases: Array, dtype: str, inverse: bool) -> Array:
    points = np.array([(cos(p), sin(p)) for p in (-phases if inverse else phases)])
    if dtype == "float32":
        return points.astype(np.float32)
    return np.floor(0.5 + ((1 << FRACTION[dtype]) - 1) * points).astype(dtype)


def rfft(x: Array, size: int) -> Array:
    """Return spectra (..., size + 2) of signals (..., length), real and imaginary parts in turn."""
    n, arithmetic = size // 2, Arithmetic(str(x.dtype))
    filled = np.zeros((*x.shape[:-1], size), x.dtype)
    filled[..., : x.shape[-1]] = x
    z = arithmetic.transformed(filled.reshape(*x.shape[:-1], n, 2), False)
    spectrum = np.zeros((*x.shape[:-1], n + 1, 2), x.dtype)
    first = arithmetic.divided(z[..., 0, :], 2)
    spectrum[..., 0, 0] = arithmetic.stored(first[..., 0] + first[..., 1])
    spectrum[..., n, 0] = arithmetic.stored(first[..., 0] - first[..., 1])
    for k in range(1, n // 2 + 1):
        one, other = arithmetic.divided(z[..., k, :], 2), arithmetic.mirrored(z[..., n - k, :])
        both, difference = arithmetic.sums(one, other)
        turned = arithmetic.product(difference, turns(n, str(x.dtype), False)[k - 1])
        spectrum[..., k, :] = arithmetic.halved(both + turned)
        spectrum[..., n - k, :] = arithmetic.halved((both - turned) * np.array([1, -1]))
    return spectrum.reshape(*x.shape[:-1], size + 2)


def irfft(x: Array, size: int) -> Array:
    """Return signals (..., size) of spectra (..., size + 2)."""
    n, arithmetic = size // 2, Arithmetic(str(x.dtype))
    given = x.reshape(*x.shape[:-1], n + 1, 2).astype(arithmetic.wide)
    packed: Array = np.zeros((*x.shape[:-1], n, 2), arithmetic.wide)
    first, last = given[..., 0, 0], given[..., n, 0]
    start = np.stack(arithmetic.sums(first, last), axis=-1)
    packed[..., 0, :] = arithmetic.divided(start, 2)
    for k in range(1, n // 2 + 1):
        one = arithmetic.divided(given[..., k, :], 2)
        other = arithmetic.mirrored(given[..., n - k, :])
        even, difference = arithmetic.sums(one, other)
        odd = arithmetic.product(difference, turns(n, str(x.dtype), True)[k - 1])
        packed[..., k, :] = arithmetic.stored(even + odd)
        packed[..., n - k, :] = arithmetic.stored(arithmetic.stored(even - odd) * np.array([1, -1]))
    signal = arithmetic.transformed(packed, True)
    if not arithmetic.exact:  # in fixed point the stages have divided by the size
        signal = signal * np.float32(1 / size)
    return signal.astype(x.dtype).reshape(*x.shape[:-1], size)


class Arithmetic:
    """Arithmetic on a stored type in arrays of a wider one; the last axis is real, imaginary."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self.exact = dtype != "float32"
        self.wide = np.int64 if self.exact else np.float32

    def stored(self, x: Array) -> Array:
        """Return ``x`` wrapped around as the stored type does."""
        return x.astype(self.dtype).astype(self.wide)

    def rounded(self, x: Array) -> Array:
        """Return sums of products as the stored type."""
        if not self.exact:
            return x
        bits = FRACTION[self.dtype]
        return self.stored((x + (1 << (bits - 1))) >> bits)

    def divided(self, x: Array, by: int) -> Array:
        """Return ``x / by``."""
        if not self.exact:
            return x
        return self.rounded(x.astype(np.int64) * (((1 << FRACTION[self.dtype]) - 1) // by))

    def sums(self, a: Array, b: Array) -> tuple[Array, Array]:
        """Return the sum and the difference."""
        return self.stored(a + b), self.stored(a - b)

    def mirrored(self, x: Array) -> Array:
        """Return half the conjugate."""
        return self.divided(self.stored(x * np.array([1, -1], self.wide)), 2)

    def halved(self, x: Array) -> Array:
        """Return the half of sums of two."""
        if not self.exact:
            return x * np.float32(0.5)
        return (self.stored(x) if self.dtype == "int32" else x) >> 1

    def product(self, a: Array, b: Array) -> Array:
        """Return the product of complex numbers."""
        a, b = a.astype(self.wide), b.astype(self.wide)
        real = a[..., 0] * b[..., 0] - a[..., 1] * b[..., 1]
        other = a[..., 0] * b[..., 1] + a[..., 1] * b[..., 0]
        return self.rounded(np.stack([real, other], axis=-1))

    def transformed(self, x: Array, inverse: bool) -> Array:
        """Return the transform of complex numbers (..., n, 2): of each part, then of all."""
        n = x.shape[-2]
        if n == 1:
            return x.astype(self.wide)
        radix = factors(n)[0]
        size = n // radix
        angles, parts = roots(n, self.dtype, inverse), []
        for k in range(radix):
            part = self.divided(self.transformed(x[..., k::radix, :], inverse), radix)
            # The roots of n are bit by bit every other root of a larger transform.
            parts.append(part if k == 0 else self.product(part, angles[k * np.arange(size)]))
        turn = [1, 1j, -1, -1j] if inverse else [1, -1j, -1, 1j]
        blocks = []
        for q in range(radix):
            total = np.zeros_like(parts[0])
            for k, part in enumerate(parts):
                total = total + _turned(part, turn[(q * k * (4 // radix)) % 4])
            blocks.append(self.stored(total))
        return np.concatenate(blocks, axis=-2)


def _turned(x: Array, by: complex) -> Array:
    """Return complex numbers times a power of the imaginary unit."""
    real, other = x[..., 0], x[..., 1]
    if by.imag:
        real, other = -other * int(by.imag), real * int(by.imag)
    else:
        real, other = real * int(by.real), other * int(by.real)
    return np.stack([real, other], axis=-1)
