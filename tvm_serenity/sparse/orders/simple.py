"""Orders that need no search."""

import numpy as np

from tvm_serenity.sparse.network import FFNN, Ints


def two_optimal(net: FFNN) -> Ints:
    """Return Theorem 1's order: all connections into the first neuron, into the second, and so on.

    Neurons in the order of their levels, then of their numbers; sources ascend. Under MIN it needs
    at most 2 (W + N - I) I/Os, twice what any order does.
    """
    return np.lexsort((net.sources, net.targets, net.levels[net.targets])).astype(np.int32)


def layerwise(net: FFNN) -> Ints:
    """Return the order of a chain of sparse products, source by source: one layer, then the next.

    Partial sums of a whole layer are alive at once: what a product in column format does.
    """
    level = net.levels
    return np.lexsort((net.targets, net.sources, level[net.targets])).astype(np.int32)
