"""Seeded test inputs: random and extreme values within the allowed ranges.

    for arrays in input_sets(parameters, seed=0):
        kernel(*arrays, ...)

Equal arguments give equal arrays, on any machine.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

FILLS = ("mixed", "random", "min", "max", "zero", "alternating")
"""The patterns that fill a set of inputs, the most revealing first.

"mixed" puts extremes among random values.
"""


@dataclass(frozen=True)
class Range:
    """The integers from ``low`` to ``high``, both included."""

    low: int
    high: int

    def within(self, other: "Range") -> "Range":
        """Return the intersection of both ranges, or ``other`` if it is empty."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        return Range(low, high) if low <= high else other

    def holds(self, other: "Range") -> bool:
        """Return whether ``other`` lies within this range."""
        return self.low <= other.low and other.high <= self.high


@dataclass(frozen=True)
class Parameter:
    """An input: shape, type, and the ``allowed`` range and ``zero`` point if they are known."""

    shape: tuple[int, ...]
    dtype: str
    allowed: Range | None = None
    zero: int = 0


def input_sets(
    parameters: Sequence[Parameter], seed: int = 0, fills: Sequence[str] = FILLS
) -> Iterator[list[Array]]:
    """Yield one list of arrays, one per parameter, for each of ``fills``.

    Integers of 8 and 16 bits take all values; wider ones use half their bits, so that a product of
    two does not overflow. Floats are standard normal and finite; "mixed" adds zeros and numbers
    1,000 times larger.
    """
    for number, fill in enumerate(fills):
        yield [
            drawn(parameter, fill, np.random.default_rng([seed, number, position]))
            for position, parameter in enumerate(parameters)
        ]


def drawn(parameter: Parameter, fill: str, rng: np.random.Generator) -> Array:
    """Return an array for ``parameter``, filled by ``fill`` (one of ``FILLS``)."""
    kind = np.dtype(parameter.dtype)
    if kind.kind == "b":
        return _of_bools(parameter.shape, fill, rng)
    if kind.kind == "f" and parameter.allowed is None:
        return _of_floats(parameter.shape, kind, fill, rng)
    return _of_integers(parameter, fill, rng).astype(kind)


def _of_bools(shape: tuple[int, ...], fill: str, rng: np.random.Generator) -> Array:
    if fill in ("mixed", "random"):
        return np.asarray(rng.random(shape) < 0.5)
    if fill == "alternating":
        return _alternating(shape)
    return np.full(shape, fill == "max")


def _of_floats(
    shape: tuple[int, ...], kind: np.dtype[Any], fill: str, rng: np.random.Generator
) -> Array:
    large = 100.0 if kind.itemsize < 4 else 1000.0
    if fill in ("mixed", "random"):
        values = rng.standard_normal(shape)
        if fill == "mixed":
            chosen = rng.random(shape)
            values = np.where(chosen < 1 / 16, 0.0, values)
            values = np.where(chosen > 15 / 16, values * large, values)
        return np.asarray(values, kind)
    if fill == "alternating":
        return np.where(_alternating(shape), 1.0, -1.0).astype(kind)
    return np.full(shape, {"min": -large, "max": large, "zero": 0.0}[fill], kind)


def _of_integers(parameter: Parameter, fill: str, rng: np.random.Generator) -> Array:
    limits = limits_of(parameter)
    low, high = limits.low, limits.high
    zero = min(max(parameter.zero, low), high)
    shape = parameter.shape
    if fill == "alternating":
        return np.where(_alternating(shape), high, low)
    if fill in ("min", "max", "zero"):
        return np.full(shape, {"min": low, "max": high, "zero": zero}[fill])
    values = rng.integers(low, high, shape, np.int64, endpoint=True)
    if fill == "mixed":
        edges = np.array([low, high, zero], np.int64)[rng.integers(0, 3, shape)]
        values = np.where(rng.random(shape) < 1 / 4, edges, values)
    return np.asarray(values)


def limits_of(parameter: Parameter) -> Range:
    """Return the range of values drawn for a parameter that is an integer or an index."""
    kind = np.dtype(parameter.dtype)
    if kind.kind == "f":
        assert parameter.allowed is not None
        return parameter.allowed
    whole = np.iinfo(kind)
    bits = 8 * kind.itemsize
    usual = Range(int(whole.min), int(whole.max))
    if bits > 16:
        # The least number of 32 bits has no negative, and TVM leaves overflow undefined.
        half = 2 ** (bits // 2 - 1) - (bits > 32)
        usual = Range(-half if whole.min < 0 else 0, half)
    if parameter.allowed is None:
        return usual
    held = parameter.allowed.within(Range(int(whole.min), int(whole.max)))
    return usual.within(held) if held.high > usual.high else held


def _alternating(shape: tuple[int, ...]) -> Array:
    """Return booleans that alternate along every axis."""
    steps = np.indices(shape, np.int64, sparse=True)
    return np.asarray(np.broadcast_to(sum(steps, np.int64(0)) % 2 == 1, shape))
