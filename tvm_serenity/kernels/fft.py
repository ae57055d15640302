"""Fast Fourier transforms of real signals in fixed point, as in kissfft.

A transform of ``2 n`` real numbers is one of ``n`` complex numbers, with radices 4 and one 2. Each
stage first divides by its radix to avoid overflow, multiplies by rounded roots of unity, and adds
in the stored type, where sums wrap. ``quantize.fourier`` has the constants.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T  # noqa: N812

from tvm_serenity.kernels.build import written_for_any
from tvm_serenity.kernels.fixed16 import named
from tvm_serenity.quantize.fourier import FRACTION, WIDE, factors

Pair = tuple[Any, Any]
"""Real and imaginary part, in the wide type."""


@dataclass(frozen=True)
class Fourier:
    """Transforms of ``count`` signals of ``length`` numbers each, zero-padded to ``size``."""

    count: int
    length: int
    size: int
    dtype: str
    inverse: bool = False

    @property
    def half(self) -> int:
        """The number of complex values that are transformed."""
        return self.size // 2


def rfft(spec: Fourier) -> tirx.PrimFunc:
    """Return the kernel ``(x, roots, turns, result)``: a spectrum with interleaved parts."""
    return written_for_any(
        {"x": ((spec.count, spec.length), spec.dtype), **_constants(spec)}
        | {"result": ((spec.count, 2 * spec.half + 2), spec.dtype)},
        partial(_rfft, spec),
    )


def irfft(spec: Fourier) -> tirx.PrimFunc:
    """Return the kernel ``(x, roots, turns, result)``: the signal of a spectrum."""
    return written_for_any(
        {"x": ((spec.count, 2 * spec.half + 2), spec.dtype), **_constants(spec)}
        | {"result": ((spec.count, spec.size), spec.dtype)},
        partial(_irfft, spec),
    )


def _constants(spec: Fourier) -> dict[str, tuple[tuple[int, ...], str]]:
    return {
        "roots": ((spec.half, 2), spec.dtype),
        "turns": ((max(spec.half // 2, 1), 2), spec.dtype),
    }


@dataclass(frozen=True)
class _Numbers:
    """Arithmetic of the stored type ``dtype`` on values of a wider type."""

    dtype: str

    @property
    def wide(self) -> str:
        return WIDE[self.dtype]

    def const(self, value: int) -> Any:
        return tirx.const(value, self.wide)

    def load(self, buffer: Any, *index: Any) -> Any:
        return buffer[index].astype(self.wide)

    def kept(self, value: Any) -> Any:
        """Return ``value`` wrapped to the stored type, in a variable."""
        if self.dtype == "float32":
            return named(value, "float32")
        return named(value.astype(self.dtype).astype(self.wide), self.wide)

    def rounded(self, value: Any) -> Any:
        """Return a sum of products in the stored type."""
        if self.dtype == "float32":
            return named(value, "float32")
        bits = FRACTION[self.dtype]
        return self.kept(tirx.shift_right(value + self.const(1 << (bits - 1)), self.const(bits)))

    def divided(self, x: Pair, by: int) -> Pair:
        if self.dtype == "float32":
            return x
        factor = self.const(((1 << FRACTION[self.dtype]) - 1) // by)
        return self.rounded(x[0] * factor), self.rounded(x[1] * factor)

    def product(self, a: Pair, b: Pair) -> Pair:
        return (
            self.rounded(a[0] * b[0] - a[1] * b[1]),
            self.rounded(a[0] * b[1] + a[1] * b[0]),
        )

    def sum(self, a: Pair, b: Pair) -> Pair:
        return self.kept(a[0] + b[0]), self.kept(a[1] + b[1])

    def difference(self, a: Pair, b: Pair) -> Pair:
        return self.kept(a[0] - b[0]), self.kept(a[1] - b[1])

    def half(self, value: Any) -> Any:
        if self.dtype == "float32":
            return value * tirx.const(0.5, "float32")
        return tirx.shift_right(value, self.const(1)).astype(self.dtype)

    def pair(self, buffer: Any, index: Any) -> Pair:
        parts = (self.load(buffer, index, part) for part in range(2))
        first, second = (named(value, self.wide) for value in parts)
        return first, second

    def store(self, buffer: Any, index: Any, value: Pair) -> None:
        for part in range(2):
            T.buffer_store(buffer, value[part].astype(self.dtype), [index, part])


def _rfft(spec: Fourier, x: Any, roots: Any, turns: Any, result: Any) -> None:
    numbers, n = _Numbers(spec.dtype), spec.half
    work = T.alloc_buffer((n, 2), spec.dtype)
    zero = tirx.const(0, spec.dtype)
    with T.serial(spec.count) as c:

        def at(index: Any) -> Any:
            if spec.length >= spec.size:
                return x[c, index]
            return tirx.if_then_else(index < spec.length, x[c, index], zero)

        def read(place: Any, source: Any) -> None:
            for part in range(2):
                T.buffer_store(work, at(source * 2 + part), [place, part])

        _ordered(n, factors(n), read)
        _stages(spec, numbers, work, roots)
        _spectrum(numbers, n, (work, turns, result), c)


def _spectrum(numbers: _Numbers, n: int, buffers: tuple[Any, Any, Any], c: Any) -> None:
    """Emit the spectrum of real numbers from that of the complex numbers they were packed in."""
    work, turns, result = buffers
    zero = tirx.const(0, numbers.dtype)
    first = numbers.divided(numbers.pair(work, 0), 2)
    T.buffer_store(result, (first[0] + first[1]).astype(numbers.dtype), [c, 0])
    T.buffer_store(result, zero, [c, 1])
    T.buffer_store(result, (first[0] - first[1]).astype(numbers.dtype), [c, 2 * n])
    T.buffer_store(result, zero, [c, 2 * n + 1])
    if n < 2:
        return
    with T.serial(n // 2) as i:
        k = i + 1
        one, other = _mirrored(numbers, work, k, n)
        both, apart = numbers.sum(one, other), numbers.difference(one, other)
        turned = numbers.product(apart, numbers.pair(turns, i))
        upper = [numbers.half(_fit(numbers, both[p] + turned[p])) for p in range(2)]
        lower = [
            numbers.half(_fit(numbers, both[0] - turned[0])),
            numbers.half(_fit(numbers, turned[1] - both[1])),
        ]
        for part in range(2):  # the second store wins if both have the same index
            T.buffer_store(result, upper[part].astype(numbers.dtype), [c, k * 2 + part])
        for part in range(2):
            T.buffer_store(result, lower[part].astype(numbers.dtype), [c, (n - k) * 2 + part])


def _fit(numbers: _Numbers, value: Any) -> Any:
    """Return a sum of two numbers before halving, in C's width: 32 bits for 16 and 32 bits."""
    if numbers.dtype == "int32":
        return named(value.astype("int32").astype("int64"), "int64")
    return value


def _mirrored(numbers: _Numbers, work: Any, k: Any, n: int) -> tuple[Pair, Pair]:
    """Return element k and the conjugate of element n - k, each halved."""
    one, other = numbers.pair(work, k), numbers.pair(work, n - k)
    other = (other[0], numbers.kept(-other[1]))
    return numbers.divided(one, 2), numbers.divided(other, 2)


def _irfft(spec: Fourier, x: Any, roots: Any, turns: Any, result: Any) -> None:
    numbers, n = _Numbers(spec.dtype), spec.half
    packed = T.alloc_buffer((n, 2), spec.dtype)
    work = T.alloc_buffer((n, 2), spec.dtype)
    with T.serial(spec.count) as c:

        def at(index: Any) -> Pair:
            parts = [named(x[c, index * 2 + p].astype(numbers.wide), numbers.wide) for p in (0, 1)]
            return parts[0], parts[1]

        first, last = at(0)[0], at(n)[0]
        start = numbers.kept(first + last), numbers.kept(first - last)
        numbers.store(packed, 0, numbers.divided(start, 2))
        if n >= 2:
            with T.serial(n // 2) as i:
                k = i + 1
                one, other = at(k), at(n - k)
                other = (other[0], numbers.kept(-other[1]))
                one, other = numbers.divided(one, 2), numbers.divided(other, 2)
                even, apart = numbers.sum(one, other), numbers.difference(one, other)
                odd = numbers.product(apart, numbers.pair(turns, i))
                numbers.store(packed, k, numbers.sum(even, odd))
                low = numbers.difference(even, odd)
                numbers.store(packed, n - k, (low[0], numbers.kept(-low[1])))

        def read(place: Any, source: Any) -> None:
            for part in range(2):
                T.buffer_store(work, packed[source, part], [place, part])

        _ordered(n, factors(n), read)
        _stages(spec, numbers, work, roots)
        with T.serial(n) as i:
            for part in range(2):
                value = work[i, part]
                if spec.dtype == "float32":
                    value = value * tirx.const(1 / spec.size, "float32")
                T.buffer_store(result, value, [c, i * 2 + part])


def _ordered(n: int, radices: Sequence[int], read: Any) -> None:
    """Emit loops that read each element to its place before the first stage."""

    def nest(depth: int, place: Any, source: Any, size: int, stride: int) -> None:
        if depth == len(radices):
            read(place, source)
            return
        inner = size // radices[depth]
        with T.serial(radices[depth]) as digit:
            where = (place + digit * inner, source + digit * stride)
            nest(depth + 1, *where, inner, stride * radices[depth])

    if radices:
        nest(0, tirx.const(0, "int32"), tirx.const(0, "int32"), n, 1)
    else:
        read(0, 0)


def _stages(spec: Fourier, numbers: _Numbers, work: Any, roots: Any) -> None:
    """Emit the stages, the last radix first."""
    n, radices = spec.half, factors(spec.half)
    size = 1
    for radix in reversed(radices):
        apart = n // (size * radix)
        with T.serial(apart) as block, T.serial(size) as j:
            start = block * (size * radix) + j
            places = [start + k * size for k in range(radix)]
            terms = [numbers.divided(numbers.pair(work, place), radix) for place in places]
            for k in range(1, radix):
                terms[k] = numbers.product(terms[k], numbers.pair(roots, j * (k * apart)))
            made = _two(numbers, terms) if radix == 2 else _four(numbers, terms, spec.inverse)
            for place, value in zip(places, made, strict=True):
                numbers.store(work, place, value)
        size *= radix


def _two(numbers: _Numbers, t: Sequence[Pair]) -> list[Pair]:
    return [numbers.sum(t[0], t[1]), numbers.difference(t[0], t[1])]


def _four(numbers: _Numbers, t: Sequence[Pair], inverse: bool) -> list[Pair]:
    even, apart = numbers.sum(t[0], t[2]), numbers.difference(t[0], t[2])
    odd, turned = numbers.sum(t[1], t[3]), numbers.difference(t[1], t[3])
    left = (numbers.kept(apart[0] - turned[1]), numbers.kept(apart[1] + turned[0]))
    right = (numbers.kept(apart[0] + turned[1]), numbers.kept(apart[1] - turned[0]))
    second, fourth = (left, right) if inverse else (right, left)
    return [numbers.sum(even, odd), second, numbers.difference(even, odd), fourth]
