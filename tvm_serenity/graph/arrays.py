"""A graph as flat arrays, for code that must be fast on a million operators.

The arrays are built once per graph, without a Python loop over all operators. Views, states and
computed constants are rare, so loops handle the ops that have them.
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
    """Pairs of an op and a tensor that it reads (or writes), by op, in the op's order."""

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
    """The arrays of a graph.

    ``read`` and ``made``: pairs of an op and one of its inputs or outputs. ``size``: bytes per
    tensor. ``workspace``: bytes per op. ``maker``: the op that produces each tensor, or -1.
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
    # A stable sort is fast on values that are nearly sorted.
    sorted_values = np.sort(values, kind="stable")
    return sorted_values[np.diff(sorted_values, prepend=-1) > 0]


def grouped(keys: Ints, values: Ints, groups: int, bound: int) -> tuple[tuple[int, ...], ...]:
    """Return, for each key below ``groups``, its distinct values, ascending.

    ``keys`` and ``values`` are n pairs; values must be below ``bound``. This takes O(n log n) time.
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
"""Number of lists below which a Python loop is faster than arrays."""


def turned(lists: Sequence[Sequence[int]], count: int) -> tuple[tuple[int, ...], ...]:
    """Return, for each number below ``count``, the indices of the lists that contain it, ascending.

    A list must not contain a number twice.
    """
    if len(lists) >= FEW_LISTS:
        pairs = Pairs.of(lists)
        return grouped(pairs.tensor, pairs.op, count, len(lists))
    holders: list[list[int]] = [[] for _ in range(count)]
    for index, held in enumerate(lists):
        for number in held:
            holders[number].append(index)
    return tuple([tuple(indices) for indices in holders])
