"""A graph as flat arrays, for what must stay fast at a million operators.

Built once a graph without a loop in Python over its operators; what only some graphs have (views,
state, constants made by operators) is looked at op by op, for those ops alone.
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
    """Which op reads (or makes) which tensor, op by op in the order it lists them."""

    op: Ints
    tensor: Ints

    @staticmethod
    def of(lists: Sequence[Sequence[int]]) -> "Pairs":
        """Return the pairs of one list of tensors for every op."""
        lengths = ints(map(len, lists), len(lists))
        flat = ints(chain.from_iterable(lists), int(lengths.sum()))
        return Pairs(np.repeat(np.arange(len(lists)), lengths), flat)


@dataclass(frozen=True)
class Arrays:
    """``read`` and ``made`` with their tensors; sizes and workspace in bytes, by index.

    ``maker``: the op that makes each tensor, or -1.
    """

    read: Pairs
    made: Pairs
    size: Ints
    workspace: Ints
    maker: Ints


def ints(values: Iterable[int], count: int = -1) -> Ints:
    """Return an array of integers."""
    if isinstance(values, range):
        return np.arange(values.start, values.stop, values.step, dtype=np.int64)
    return np.fromiter(values, dtype=np.int64, count=count)


def distinct(values: Ints) -> Ints:
    """Return the values, which are 0 or more, ascending, each once."""
    found = np.sort(values, kind="stable")  # mostly in order already
    return found[np.diff(found, prepend=-1) > 0]


def grouped(keys: Ints, values: Ints, groups: int, bound: int) -> tuple[tuple[int, ...], ...]:
    """Return for each key from 0 on its values, ascending, each once; values are below ``bound``.

    In O(n log n) for n pairs.
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
"""So many lists are turned in a loop, which is faster than arrays then."""


def turned(lists: Sequence[Sequence[int]], count: int) -> tuple[tuple[int, ...], ...]:
    """Return for each number below ``count`` the lists that hold it, ascending.

    A list holds a number once at most.
    """
    if len(lists) >= FEW_LISTS:
        pairs = Pairs.of(lists)
        return grouped(pairs.tensor, pairs.op, count, len(lists))
    found: list[list[int]] = [[] for _ in range(count)]
    for index, held in enumerate(lists):
        for number in held:
            found[number].append(index)
    return tuple([tuple(one) for one in found])
