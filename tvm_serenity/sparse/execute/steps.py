"""Arranges the connections of neurons that are computed together, so that they share loads.

A group has up to three neurons a, b and c, each with its sum in registers. A source that feeds
several of them is loaded once. The connections of a group run in several loops. All steps of a loop
have the same form: a number of sources, and for each source the neurons that it feeds, which
``LOOPS`` gives as a bit mask:

* Groups of 2: steps ``ab`` (one source feeds both), then ``a b`` (one source each), then ``a``.
* Groups of 3: steps ``abc``, then ``ab ac bc``, then ``a b c``, then ``a`` and ``b`` separately.

Neurons are labelled by decreasing number of connections, so these loops are sufficient. A source of
two neurons for which no step ``ab ac bc`` can be completed is loaded once per neuron.
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
"""By group size: the number of loops before the loops for single remaining connections."""
LARGEST = max(LOOPS)
MOST = max(map(len, LOOPS.values()))
"""The largest number of loops of a group."""


@dataclass(frozen=True)
class LoopOrder:
    """The W connections of G groups in the order of their loops.

    ``counts`` (G, MOST): the number of steps of each loop. ``source_at``, ``weight_at`` (G): the
    positions at which a group's loads and weights begin. ``loads``: for each load, one of the
    connections that use it. ``weights`` (W): the connections.
    """

    counts: Longs
    source_at: Longs
    weight_at: Longs
    loads: Longs
    weights: Longs


@dataclass(frozen=True)
class _Cells:
    """L loads of sources.

    ``group`` (L): the group of each load. ``mask`` (L): the neurons that it feeds, as a bit mask.
    ``connections`` (L, 3): its connection to each neuron of the group, or -1.
    """

    group: Longs
    mask: Longs
    connections: Longs

    def ranked(self) -> Longs:
        """Return the rank of each load among the loads with the same group and mask."""
        key = 8 * self.group + self.mask
        order = np.lexsort((self.connections.max(axis=1), key))
        first = np.ones(len(order), dtype=bool)
        first[1:] = key[order][1:] != key[order][:-1]
        begin = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order)) - begin
        return rank

    def counted(self, groups: int) -> Longs:
        """Return the number of loads per group and mask, of shape (groups, 8)."""
        key = 8 * self.group + self.mask
        return np.bincount(key, minlength=8 * groups).reshape(groups, 8)


def steps(size: Longs, group: Longs, label: Longs, source: Ints) -> LoopOrder:
    """Return the connections in the order of the loops' steps.

    ``size`` (G): neurons per group. ``group``, ``label``, ``source`` (W): for each connection, its
    group, the index of its target within the group (0 has the most connections), and its source.
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
    """Return one load per group and source."""
    key = group * (int(source.max()) + 1) + source
    distinct, inverse = np.unique(key, return_inverse=True)
    connections = np.full((len(distinct), LARGEST), -1, dtype=np.int64)
    connections[inverse, label] = np.arange(len(source))
    owner = np.empty(len(distinct), dtype=np.int64)
    owner[inverse] = group
    return _Cells(owner, (connections >= 0) @ (1 << np.arange(LARGEST)), connections)


def _paired(cells: _Cells, size: Longs) -> _Cells:
    """Return loads such that groups of 3 have equally many loads for ``ab``, ``ac`` and ``bc``.

    The surplus is split into one load per neuron.
    """
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
    """Return the loop of each load, its step in the loop, and its place in the step."""
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
