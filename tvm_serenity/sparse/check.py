"""Checks that connections are in a computable order."""

import numpy as np
from numpy.typing import ArrayLike

from tvm_serenity.errors import InputError
from tvm_serenity.sparse.network import FFNN, Ints, Longs


def check_order(net: FFNN, order: ArrayLike) -> Ints:
    """Return ``order`` as an array: each connection once, after all that its source waits for.

    Raises :class:`InputError`, which names the connection, or the pair out of order.
    """
    given = np.asarray(order)
    if given.shape != (net.connections,) or not np.issubdtype(given.dtype, np.integer):
        raise InputError(
            f"the order has another length than the network's {net.connections} connections"
        )
    if given.min() < 0 or given.max() >= net.connections:
        raise InputError(f"the order names a connection outside of 0 to {net.connections - 1}")
    count = np.bincount(given, minlength=net.connections)
    if count.max() > 1:
        raise InputError(f"the order names connection {int(count.argmax())} twice")
    position, complete = _positions(net, given)
    early = np.flatnonzero(position < complete[net.sources])
    if len(early):
        e = early[position[early].argmin()]
        other = given[complete[net.sources[e]]]
        raise InputError(
            f"the order is not topological: connection {e} "
            f"({net.sources[e]} -> {net.targets[e]}) stands before connection {other} "
            f"({net.sources[other]} -> {net.targets[other]}), which completes its source"
        )
    return given.astype(np.int32)


def is_topological(net: FFNN, order: Ints) -> bool:
    """Return whether connections, listed once each, come after their source is complete."""
    position, complete = _positions(net, order)
    return bool((position > complete[net.sources]).all())


def _positions(net: FFNN, order: Ints) -> tuple[Longs, Longs]:
    """Return the position of each connection, and the one that completes each neuron."""
    position = np.empty(net.connections, dtype=np.int64)
    position[order] = np.arange(net.connections)
    complete = np.full(net.neurons, -1, dtype=np.int64)
    np.maximum.at(complete, net.targets, position)
    return position, complete
