"""Input sets that together contain every stored value, for kernels that read tables."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from tvm_serenity.validation.inputs import Array, Parameter, Range, limits_of

_MOST_SETS = 256
_WIDE_STEP = 64
"""The step between values of 16 bits: tables have 513 samples, 128 values apart."""


def sweeps(parameters: Sequence[Parameter]) -> Iterator[list[Array]]:
    """Yield input sets, one array per parameter.

    The elements count through the values of their type; each set continues the previous one until
    all values have occurred. A second series has the largest value at the start of each row, the
    maximum that a softmax subtracts. Nothing is yielded if no parameter has 8 or 16 bits.
    """
    narrow = [p for p in parameters if np.dtype(p.dtype).kind in "iu" and _bytes(p) <= 2]
    if not narrow or any(not math.prod(p.shape) for p in parameters):
        return
    values = max(_values(p) for p in narrow)
    fewest = min(math.prod(p.shape) for p in narrow)
    rows = max(_below(p) for p in narrow)
    sets = min(-(-values // fewest), _MOST_SETS)
    for number in range(sets):
        yield [_counting(p, number * fewest, first=False) for p in parameters]
    for number in range(min(-(-values // max(rows, 1)), _MOST_SETS) if rows else 0):
        yield [_counting(p, number * rows, first=True) for p in parameters]


def _bytes(parameter: Parameter) -> int:
    return np.dtype(parameter.dtype).itemsize


def _step(parameter: Parameter) -> int:
    return 1 if _bytes(parameter) == 1 else _WIDE_STEP


def _values(parameter: Parameter) -> int:
    limits = limits_of(parameter)
    return (limits.high - limits.low) // _step(parameter) + 1


def _below(parameter: Parameter) -> int:
    """Return the number of elements that are not the first of a row."""
    count = math.prod(parameter.shape)
    return count - count // parameter.shape[-1] if parameter.shape else 0


def _counting(parameter: Parameter, begin: int, first: bool) -> Array:
    kind, count = np.dtype(parameter.dtype), math.prod(parameter.shape)
    if kind.kind not in "iu":
        return np.linspace(-8, 8, max(count, 1)).reshape(parameter.shape).astype(kind)
    limits: Range = limits_of(parameter)
    step = _step(parameter) if kind.itemsize <= 2 else 1
    at = np.arange(count) + begin
    if first and parameter.shape:  # the first of each row is set below
        columns = parameter.shape[-1]
        at = np.arange(count) - np.arange(count) // columns - 1 + begin
    made = limits.low + at * step % (limits.high - limits.low + 1)
    made = made.reshape(parameter.shape)
    if first and parameter.shape:
        made[..., 0] = limits.high
    return np.asarray(made.astype(kind))
