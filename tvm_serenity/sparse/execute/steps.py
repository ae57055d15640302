"""Neurons computed together: which connections share a load, in loops of equal steps.

A group has up to three neurons, each with its sum in registers. A source that feeds several of
them is loaded once. All steps of a loop do the same; ``LOOPS`` names the neurons that each source
of a step feeds, as a bit mask:

* 2 neurons: ``ab``; then ``a b`` (two sources); then what ``a`` has left.
* 3 neurons: ``abc``; ``ab ac bc``; ``a b c``; then what ``a`` and ``b`` have left.

Labels are by falling number of connections, so nothing else is ever left: a source of two neurons
that finds no partners for a step ``ab ac bc`` is loaded once for each of them.
"""

from dataclasses import dataclass

import numpy as np

from tvm_serenity.sparse.network import Ints, Longs

LOOPS: dict[int, tuple[tuple[int, ...], ...]] = {
    1: ((1,),),
    2: ((3,), (1, 2), (1,)),
    3: ((7,), (3, 5, 6), (1, 2, 4), (1,), (2,)),
}
FULL = {1: 1, 2: 2, 3: 3}
"""Loops of each size before those for what is left."""
LARGEST = max(LOOPS)
MOST = max(map(len, LOOPS.values()))
"""Loops of a group, at most."""


@dataclass(frozen=True)
class LoopOrder:
    """Connections in the order of the loops.

    ``counts`` (G, MOST): steps of each loop; ``source_at``, ``weight_at`` (G): where a group's
    loads and weights begin; ``loads``: for each load, one of the connections it is for;
    ``weights`` (W): the connections.
    """

    counts: Longs
    source_at: Longs
    weight_at: Longs
    loads: Longs
    weights: Longs


@dataclass(frozen=True)
class _Cells:
    """Loads: of a ``group``, for the neurons in ``mask``, whose connections (L, 3) are or -1."""

    group: Longs
    mask: Longs
    connections: Longs

    def ranked(self) -> Longs:
        """Return the rank of each load among those of its group and mask."""
        key = 8 * self.group + self.mask
        order = np.lexsort((self.connections.max(axis=1), key))
        first = np.ones(len(order), dtype=bool)
        first[1:] = key[order][1:] != key[order][:-1]
        begin = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order)) - begin
        return rank

    def counted(self, groups: int) -> Longs:
        """Return (groups, 8): how many loads of each mask."""
        key = 8 * self.group + self.mask
        return np.bincount(key, minlength=8 * groups).reshape(groups, 8)


def steps(size: Longs, group: Longs, label: Longs, source: Ints) -> LoopOrder:
    """Return the steps of groups of ``size`` (G) neurons.

    ``group``, ``label``, ``source`` (W): of each connection, its group, which of the group's
    neurons it feeds (0 has the most connections) and what it reads.
    """
    cells = _paired(_cells(group, label, source), size)
    loop, step, place = _placed(cells, size)
    order = np.lexsort((place, step, loop, cells.group))
    groups = cells.group[order]
    feeds = cells.connections[order]
    loop_of = groups[place[order] == 0] * MOST + loop[order][place[order] == 0]
    return LoopOrder(
        np.bincount(loop_of, minlength=MOST * len(size)).reshape(len(size), MOST),
        np.searchsorted(groups, np.arange(len(size))),
        np.searchsorted(np.repeat(groups, (feeds >= 0).sum(axis=1)), np.arange(len(size))),
        feeds.max(axis=1),
        feeds[feeds >= 0],
    )


def _cells(group: Longs, label: Longs, source: Ints) -> _Cells:
    """Return one load for each source of each group."""
    key = group * (int(source.max()) + 1) + source
    distinct, inverse = np.unique(key, return_inverse=True)
    connections = np.full((len(distinct), LARGEST), -1, dtype=np.int64)
    connections[inverse, label] = np.arange(len(source))
    owner = np.empty(len(distinct), dtype=np.int64)
    owner[inverse] = group
    return _Cells(owner, (connections >= 0) @ (1 << np.arange(LARGEST)), connections)


def _paired(cells: _Cells, size: Longs) -> _Cells:
    """Return the loads where those for two of three neurons are as many for each two."""
    pairs = LOOPS[3][1]
    even = cells.counted(len(size))[:, pairs].min(axis=1)
    rest = (
        (size[cells.group] == 3)
        & np.isin(cells.mask, pairs)
        & (cells.ranked() >= even[cells.group])
    )
    parts = [_Cells(*(a[~rest] for a in (cells.group, cells.mask, cells.connections)))]
    for bit in range(LARGEST):
        here = rest & (cells.mask >> bit & 1 == 1)
        alone = np.full((int(here.sum()), LARGEST), -1, dtype=np.int64)
        alone[:, bit] = cells.connections[here, bit]
        parts.append(_Cells(cells.group[here], np.full(len(alone), 1 << bit), alone))
    return _Cells(
        np.concatenate([part.group for part in parts]),
        np.concatenate([part.mask for part in parts]),
        np.concatenate([part.connections for part in parts]),
    )


def _placed(cells: _Cells, size: Longs) -> tuple[Longs, Longs, Longs]:
    """Return of each load its loop, its step there and its place in the step."""
    count, step = cells.counted(len(size)), cells.ranked()
    loop = np.zeros(len(step), dtype=np.int64)
    place = np.zeros(len(step), dtype=np.int64)
    for many, loops in LOOPS.items():
        for number, masks in enumerate(loops[: FULL[many]]):
            equal = count[:, masks].min(axis=1)
            for position, mask in enumerate(masks):
                here = np.flatnonzero((size[cells.group] == many) & (cells.mask == mask))
                loop[here], place[here] = number, position
                left = here[step[here] >= equal[cells.group[here]]]
                loop[left], place[left] = FULL[many] + position, 0
                step[left] -= equal[cells.group[left]]
    return loop, step, place
