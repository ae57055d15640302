"""Blocked orders for the cache: connections by level, then by block of sources, then by target."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_serenity.sparse.network import FFNN, Ints, Longs

WINDOW = 512
"""Number of targets among which those with common sources are grouped."""


@dataclass(frozen=True)
class Blocking:
    """A blocked order of W connections.

    ``block`` (W, ascending): the block number of each connection of ``order``. All targets of a
    block are of the same level.
    """

    order: Ints
    block: Longs


def blocked(
    net: FFNN, rows: int | None = None, targets: int | None = None, together: int = 1
) -> Blocking:
    """Return the blocked order of ``net``: by level, part of a level, block of sources, target.

    A part has about ``targets`` targets and a block ``rows`` sources; None stands for all of a
    level. Within a block, ``together`` targets with common sources are neighbours, and targets with
    equal numbers of connections are neighbours, because the processor predicts loops of equal
    length.
    """
    level = net.levels
    part, block = _parts(level, targets), _parts(level, rows)
    keys = (level[net.targets], part[net.targets], block[net.sources])
    order = np.lexsort((net.sources, net.targets, *reversed(keys)))
    changes = [np.diff(key[order], prepend=-1) != 0 for key in keys]
    number = np.cumsum(np.logical_or.reduce(changes)) - 1
    cell = number * net.neurons + net.targets[order]
    if together == 1:
        _, inverse, counts = np.unique(cell, return_inverse=True, return_counts=True)
        place = counts[inverse]
    else:
        place = _partners(net, order, number, together)
    by_place = np.lexsort((net.sources[order], cell, place, number))
    return Blocking(order[by_place].astype(np.int32), number)


def _parts(level: Ints, largest: int | None) -> Longs:
    """Return the part number of each neuron: each level is cut into parts of equal size.

    A part has at most ``largest`` neurons; None: one part per level.
    """
    width = np.bincount(level)
    parts = np.maximum(1, np.rint(width / (largest or len(level))).astype(np.int64))
    order = np.argsort(level, kind="stable")
    index = np.empty(len(level), dtype=np.int64)
    index[order] = np.arange(len(level)) - (np.cumsum(width) - width)[level[order]]
    number: Longs = (np.cumsum(parts) - parts)[level] + index * parts[level] // width[level]
    return number


def _partners(net: FFNN, order: NDArray[Any], number: Longs, together: int) -> Longs:
    """Return the position of each connection's target within its block."""
    place = np.empty(len(order), dtype=np.int64)
    begins = np.append(np.flatnonzero(np.diff(number, prepend=-1)), len(order))
    for begin, end in zip(begins[:-1].tolist(), begins[1:].tolist(), strict=True):
        here = order[begin:end]
        targets, row = np.unique(net.targets[here], return_inverse=True)
        sources, column = np.unique(net.sources[here], return_inverse=True)
        feeds = np.zeros((len(targets), len(sources)), dtype=np.float32)
        feeds[row, column] = 1
        grouped = []
        for window in np.array_split(np.arange(len(targets)), -(-len(targets) // WINDOW)):
            chosen = _matched(feeds[window], together)
            grouped += [window[rows] for rows in chosen]
        ranked = np.empty(len(targets), dtype=np.int64)
        ranked[_by_length(feeds, grouped)] = np.arange(len(targets))
        place[begin:end] = ranked[row]
    return place


def _matched(feeds: NDArray[np.float32], together: int) -> list[list[int]]:
    """Return the rows of ``feeds`` in groups of ``together`` rows with many common columns.

    The grouping is greedy: the row with the most columns takes the rows with the best scores. The
    score of a row is its number of common columns, less the difference in the number of columns.
    """
    size = feeds.sum(axis=1)
    alike = feeds @ feeds.T - np.abs(size[:, None] - size[None, :])
    taken = np.zeros(len(size), dtype=np.float32)
    groups: list[list[int]] = []
    for lead in np.argsort(-size, kind="stable").tolist():
        if taken[lead]:
            continue
        taken[lead] = np.inf
        chosen = [lead]
        score = alike[lead] - taken
        while len(chosen) < together and len(chosen) + together * len(groups) < len(size):
            best = int(score.argmax())
            taken[best] = np.inf
            chosen.append(best)
            score += alike[best] - taken
        groups.append(chosen)
    return groups


def _by_length(feeds: NDArray[np.float32], groups: list[Longs]) -> Longs:
    """Return the rows: full groups first, then by their numbers of shared and own columns."""
    keys = []
    for rows in groups:
        chosen = feeds[rows]
        lengths = chosen.sum(axis=1).tolist()
        keys.append((-len(rows), sum(lengths) - float(chosen.max(axis=0).sum()), lengths))
    ranked = sorted(range(len(groups)), key=keys.__getitem__)
    return np.concatenate([groups[number] for number in ranked])
