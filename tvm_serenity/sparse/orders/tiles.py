"""Output-stationary tiles: a group of sums stays in fast memory while its sources are read."""

from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from tvm_serenity.sparse.network import FFNN, Ints
from tvm_serenity.sparse.orders.result import TIME, Ordered, OrderOptions, measured


def tiled(net: FFNN, group: int, fused: bool = True) -> Ints:
    """Return the order that computes ``group`` neurons of a level together.

    Sources ascend and descend in alternate groups, so that the sources read last are used first.
    ``fused``: a connection into the last level comes right after its source is complete. This saves
    I/Os if the last level is small enough to stay in fast memory.
    """
    level = net.levels
    tile = _ranks(level, net.fan_in > 0)[net.targets] // group
    along = np.where(tile % 2 == 0, net.sources, -net.sources)
    order = np.lexsort((net.targets, along, tile, level[net.targets]))
    late = level[net.targets] == level.max()
    if not fused or late.all():
        return order.astype(np.int32)
    early = order[~late[order]]
    position = np.empty(net.connections)
    position[early] = np.arange(len(early))
    complete = np.full(net.neurons, -1.0)
    np.maximum.at(complete, net.targets[early], position[early])
    position[late] = complete[net.sources[late]] + 0.5
    return np.lexsort((net.targets, net.sources, position)).astype(np.int32)


def tiles(net: FFNN, settings: OrderOptions) -> Ordered:
    """Return the best order of several tile sizes.

    Sizes near M - 2 suit the policy MIN, smaller ones LRU and RR.
    """
    most = settings.memory - 2
    last = int(np.count_nonzero(net.levels[net.outputs] == net.levels.max()))
    fusions = (False, True) if last < most else (False,)
    sizes = {max(1, most - less) for less in range(4)}
    sizes |= {max(1, most * share // 8) for share in range(2, 8)}
    left = settings.clock(net)
    best: Ordered | None = None
    for fused, size in product(reversed(fusions), sorted(sizes, reverse=True)):
        if best is not None and left() < 0:
            return replace(best, limit=TIME)
        order = tiled(net, size, fused)
        candidate = measured(net, order, settings, "tiles", group=size, fused=fused)
        if best is None or candidate.total < best.total:
            best = candidate
    assert best is not None
    return best


def _ranks(level: Ints, computed: NDArray[np.bool_]) -> Ints:
    """Return the rank of each computed neuron among the computed neurons of its level."""
    order = np.lexsort((np.arange(len(level)), level, ~computed))
    first = np.searchsorted(level[order][: computed.sum()], np.arange(level.max() + 2))
    rank = np.zeros(len(level), dtype=np.int32)
    rank[order] = np.arange(len(level)) - first[level[order]]
    return rank
