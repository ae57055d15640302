"""Orders that are constructed without a search."""

import numpy as np

from tvm_serenity.sparse.network import FFNN, Ints


def two_optimal(net: FFNN) -> Ints:
    """Return Theorem 1's order: connections by target, then by source.

    Targets are in the order of their levels, then of their numbers. Under MIN the order needs at
    most 2 (W + N - I) I/Os, twice the minimum over all orders.
    """
    return np.lexsort((net.sources, net.targets, net.levels[net.targets])).astype(np.int32)


def layerwise(net: FFNN) -> Ints:
    """Return the order of a chain of sparse products: layer by layer, source by source.

    All partial sums of a layer are live at the same time, as in a product in CSC format.
    """
    level = net.levels
    return np.lexsort((net.targets, net.sources, level[net.targets])).astype(np.int32)
