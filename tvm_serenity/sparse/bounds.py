"""Bounds on the I/Os of inference.

Theorem 1 holds for every network without isolated neurons and every M >= 3. Corollary 1 holds if M
is at least the bandwidth plus 2. ``phase_bound`` gives a bound from the network's structure.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tvm_serenity.errors import InputError
from tvm_serenity.sparse.network import FFNN, Ints
from tvm_serenity.sparse.simulate import Traffic


@dataclass(frozen=True)
class Bounds:
    """The bounds of Theorem 1 on reads, writes and their total.

    ``most_*`` are upper bounds for the 2-optimal order; the others are lower bounds for all orders.
    """

    reads: int
    writes: int
    total: int
    most_reads: int
    most_writes: int
    most_total: int

    def hold(self, found: Traffic) -> bool:
        """Return whether the I/Os ``found`` are within the lower and the upper bounds."""
        return (
            self.reads <= found.reads <= self.most_reads
            and self.writes <= found.writes <= self.most_writes
            and self.total <= found.total <= self.most_total
        )


def bounds(net: FFNN) -> Bounds:
    """Return the bounds of Theorem 1 (equations 1 to 3).

    The upper bounds count constant neurons as inputs. An output with outgoing connections adds no
    write to the upper bounds, because it is written only once.
    """
    w, n, i, s = net.connections, net.neurons, net.given, len(net.outputs)
    return Bounds(w + n, s, w + n + s, 2 * w + n - i, n - i, 2 * (w + n - i))


def bandwidth(net: FFNN, neuron_order: ArrayLike) -> int:
    """Return the largest distance in positions between connected neurons in ``neuron_order``.

    The minimum over all orders is the bandwidth of Corollary 1, which is hard to compute. If the
    result is k, M >= k + 2 is enough for inference without temporary I/Os. Raises
    :class:`InputError` if ``neuron_order`` is not a topological order.
    """
    return int((_positions(net, neuron_order)[:, 1] - _positions(net, neuron_order)[:, 0]).max())


def bandwidth_order(net: FFNN, neuron_order: ArrayLike) -> Ints:
    """Return the order of connections of Corollary 1: grouped by target, in ``neuron_order``.

    With a memory of at least ``bandwidth + 2`` values it needs W + N reads and S writes.
    """
    place = _positions(net, neuron_order)
    return np.lexsort((place[:, 0], place[:, 1])).astype(np.int32)


def _positions(net: FFNN, neuron_order: ArrayLike) -> Ints:
    order = np.asarray(neuron_order)
    if sorted(order.tolist()) != list(range(net.neurons)):
        raise InputError(
            f"the neuron order must list each neuron from 0 to {net.neurons - 1} exactly once"
        )
    position = np.empty(net.neurons, dtype=np.int32)
    position[order] = np.arange(net.neurons)
    place = np.stack([position[net.sources], position[net.targets]], axis=1)
    wrong = np.flatnonzero(place[:, 0] > place[:, 1])
    if len(wrong):
        e = wrong[0]
        raise InputError(
            f"the neuron order is not topological: neuron {net.targets[e]} comes before its input "
            f"{net.sources[e]}"
        )
    return place
