"""A graph as flat arrays, for code that must stay fast on a million operators.

The arrays are built once per graph without a Python loop over the operators. Features that few
graphs have (views, state, constants computed by operators) are handled op by op, for those ops
alone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Pairs:
    """Pairs of an op and a tensor that it reads (or writes), op by op in listed order."""

    op: Ints
    tensor: Ints

    @staticmethod
    def of(lists: Sequence[Sequence[int]]) -> "Pairs":
        """Return the pairs for ``lists``, which holds one list of tensors per op."""
        lengths = ints(map(len, lists), len(lists))
        flat = ints(chain.from_iterable(lists), int(lengths.sum()))
        return Pairs(np.repeat(np.arange(len(lists)), lengths), flat)


@dataclass(frozen=True)
class Arrays:
    """The arrays of a graph: (op, tensor) pairs, sizes and workspace in bytes.

    ``read`` and ``made`` pair ops with their inputs and outputs. ``maker`` is the op that produces
    each tensor, or -1.
    """

    read: Pairs
    made: Pairs
    size: Ints
    workspace: Ints
    maker: Ints


def ints(values: Iterable[int], count: int = -1) -> Ints:
    """Return an array of ``values``; ``count`` is their number, if known."""
    if isinstance(values, range):
        return np.arange(values.start, values.stop, values.step, dtype=np.int64)
    return np.fromiter(values, dtype=np.int64, count=count)


def distinct(values: Ints) -> Ints:
    """Return the distinct values, ascending; all values must be at least 0."""
    # a stable sort, because the values are nearly sorted
    sorted_values = np.sort(values, kind="stable")
    return sorted_values[np.diff(sorted_values, prepend=-1) > 0]


def grouped(keys: Ints, values: Ints, groups: int, bound: int) -> tuple[tuple[int, ...], ...]:
    """Return, for each key from 0 on, its distinct values, ascending.

    Values must be below ``bound``. Takes O(n log n) for n pairs.
    """
    pairs = distinct(keys * max(bound, 1) + values)
    ends = np.searchsorted(pairs, np.arange(1, groups + 1) * max(bound, 1)).tolist()
    flat = (pairs % max(bound, 1)).tolist()
    return (
        tuple(tuple(flat[start:end]) for start, end in zip([0, *ends[:-1]], ends, strict=True))
        if groups
        else ()
    )


FEW_LISTS = 1_000
"""Below this number of lists a Python loop is faster than arrays."""


def turned(lists: Sequence[Sequence[int]], count: int) -> tuple[tuple[int, ...], ...]:
    """Return, for each number below ``count``, the indices of the lists that hold it, ascending.

    A list must not hold a number twice.
    """
    if len(lists) >= FEW_LISTS:
        pairs = Pairs.of(lists)
        return grouped(pairs.tensor, pairs.op, count, len(lists))
    holders: list[list[int]] = [[] for _ in range(count)]
    for index, held in enumerate(lists):
        for number in held:
            holders[number].append(index)
    return tuple([tuple(indices) for indices in holders])
