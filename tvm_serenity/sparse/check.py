"""Checks that an order of connections is topological."""

import numpy as np
from numpy.typing import ArrayLike

from tvm_serenity.errors import InputError
from tvm_serenity.sparse.network import FFNN, Ints, Longs


def check_order(net: FFNN, order: ArrayLike) -> Ints:
    """Return ``order`` as an array, after a check that it is a topological order.

    It must list each connection once, after all incoming connections of its source. Raises
    :class:`InputError`, which names the wrong connection or pair of connections.
    """
    given = np.asarray(order)
    if given.shape != (net.connections,) or not np.issubdtype(given.dtype, np.integer):
        raise InputError(
            f"the order has shape {given.shape} and type {given.dtype}; it must be a list of the "
            f"network's {net.connections} connection numbers"
        )
    if given.min() < 0 or given.max() >= net.connections:
        raise InputError(
            f"the order has connection numbers {given.min()} to {given.max()}; they must be 0 to "
            f"{net.connections - 1}"
        )
    count = np.bincount(given, minlength=net.connections)
    if count.max() > 1:
        raise InputError(
            f"the order lists connection {int(count.argmax())} twice; list each connection once"
        )
    position, complete = _positions(net, given)
    early = np.flatnonzero(position < complete[net.sources])
    if len(early):
        e = early[position[early].argmin()]
        other = given[complete[net.sources[e]]]
        raise InputError(
            f"the order is not topological: connection {e} "
            f"({net.sources[e]} -> {net.targets[e]}) comes before connection {other} "
            f"({net.sources[other]} -> {net.targets[other]}), on which its source depends"
        )
    return given.astype(np.int32)


def is_topological(net: FFNN, order: Ints) -> bool:
    """Return whether each connection comes after all incoming connections of its source.

    ``order`` must list each connection once.
    """
    position, complete = _positions(net, order)
    return bool((position > complete[net.sources]).all())


def _positions(net: FFNN, order: Ints) -> tuple[Longs, Longs]:
    """Return the position of each connection, and of the last incoming connection per neuron."""
    position = np.empty(net.connections, dtype=np.int64)
    position[order] = np.arange(net.connections)
    complete = np.full(net.neurons, -1, dtype=np.int64)
    np.maximum.at(complete, net.targets, position)
    return position, complete
