"""Bounds on the I/Os of inference.

Theorem 1 holds for every network without isolated neurons and every M >= 3; Corollary 1 needs a
memory of the bandwidth plus 2. ``phase_bound`` looks at the network itself (see there).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tvm_serenity.errors import InputError
from tvm_serenity.sparse.network import FFNN, Ints
from tvm_serenity.sparse.simulate import Traffic


@dataclass(frozen=True)
class Bounds:
    """Theorem 1: what every computation needs, and what the 2-optimal order is within."""

    reads: int
    writes: int
    total: int
    most_reads: int
    most_writes: int
    most_total: int

    def hold(self, found: Traffic) -> bool:
        """Whether I/Os are within all bounds."""
        return (
            self.reads <= found.reads <= self.most_reads
            and self.writes <= found.writes <= self.most_writes
            and self.total <= found.total <= self.most_total
        )


def bounds(net: FFNN) -> Bounds:
    """Return Theorem 1's bounds (equations 1 to 3); a constant counts as an input above.

    Above, an output with outgoing connections costs nothing more: it is written once.
    """
    w, n, i, s = net.connections, net.neurons, net.given, len(net.outputs)
    return Bounds(w + n, s, w + n + s, 2 * w + n - i, n - i, 2 * (w + n - i))


def bandwidth(net: FFNN, neuron_order: ArrayLike) -> int:
    """Return the most steps between connected neurons in a topological ``neuron_order``.

    The least over all orders is the bandwidth of Corollary 1 (hard to find); any order's value k
    shows that M >= k + 2 needs no temporary I/O. Raises :class:`InputError` where the order is no
    topological order of the neurons.
    """
    return int((_positions(net, neuron_order)[:, 1] - _positions(net, neuron_order)[:, 0]).max())


def bandwidth_order(net: FFNN, neuron_order: ArrayLike) -> Ints:
    """Return Corollary 1's order of connections: all into the first neuron, into the second...

    With ``memory >= bandwidth + 2`` it needs W + N reads and S writes.
    """
    place = _positions(net, neuron_order)
    return np.lexsort((place[:, 0], place[:, 1])).astype(np.int32)


def _positions(net: FFNN, neuron_order: ArrayLike) -> Ints:
    order = np.asarray(neuron_order)
    if sorted(order.tolist()) != list(range(net.neurons)):
        raise InputError(f"an order of the neurons lists 0 to {net.neurons - 1} once each")
    position = np.empty(net.neurons, dtype=np.int32)
    position[order] = np.arange(net.neurons)
    place = np.stack([position[net.sources], position[net.targets]], axis=1)
    wrong = np.flatnonzero(place[:, 0] > place[:, 1])
    if len(wrong):
        e = wrong[0]
        raise InputError(
            f"the order is not topological: neuron {net.targets[e]} stands before "
            f"{net.sources[e]}, which it takes as input"
        )
    return place
