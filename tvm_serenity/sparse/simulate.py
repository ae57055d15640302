"""Simulates the I/Os of an order under an eviction policy: Algorithm 1 of the paper, made precise.

Fast memory holds M values: one slot for the current connection, and M - 1 slots for neurons. Each
connection is read once. A neuron is read if it is not in fast memory; while one neuron of a
connection is read, the other one cannot be evicted. An update makes a neuron dirty. The eviction of
a dirty neuron costs a write if the neuron is used again. A complete output is written when it is
evicted.

===================  ==========================================================================
policy               evicted value
===================  ==========================================================================
``min``              the value used farthest in the future (Belady 1966): fewest reads
``min-write-aware``  as ``min``, but a dirty value counts as used some connections (the delay)
                     sooner; the best of several delays. The minimum of reads plus writes is
                     NP-hard offline
``lru``              the value used least recently, dead or not
``rr``               the value in the next slot of a round-robin pointer, dead or not
===================  ==========================================================================

Source: sections II and II.A; Farach-Colton and Liberatore 2000 for the hardness.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tvm_serenity.errors import InputError
from tvm_serenity.sparse.check import check_order
from tvm_serenity.sparse.native import core
from tvm_serenity.sparse.network import FFNN, Ints

LEAST_MEMORY = 3


class Policy(StrEnum):
    """The eviction policy of the fast memory."""

    MIN = "min"
    MIN_WRITE_AWARE = "min-write-aware"
    LRU = "lru"
    RR = "rr"


NUMBERS = {policy: number for number, policy in enumerate(Policy)}
"""The number of each policy in the native core."""


@dataclass(frozen=True)
class Traffic:
    """The I/Os of one inference: reads (of neurons and connections) and writes."""

    reads: int
    writes: int

    @property
    def total(self) -> int:
        """The sum of reads and writes."""
        return self.reads + self.writes


@dataclass(frozen=True)
class Trace:
    """All moves between fast and slow memory, as arrays of positions, neurons and kinds.

    A position is an index of the order of connections; moves at the end have position W.
    ``kinds``: 0 the neuron is read, 1 it is written, 2 it is dropped without a write.
    """

    positions: Ints
    neurons: Ints
    kinds: NDArray[np.uint8]


def simulate(
    net: FFNN,
    order: ArrayLike,
    memory: int,
    policy: Policy | str = Policy.MIN,
    delay: int | None = None,
) -> Traffic:
    """Return the I/Os of ``order`` (connection numbers) with ``memory`` values of fast memory.

    ``delay``: the delay of dirty values under ``min-write-aware``, in connections; the default is
    the best of ``delays(memory)``. Raises :class:`InputError` if the order is not topological or
    the memory holds fewer than 3 values.
    """
    checked = check_order(net, order)
    return _best(net, checked, memory_of(memory), policy_of(policy), delay)


def trace(net: FFNN, order: ArrayLike, memory: int, policy: Policy | str = Policy.MIN) -> Trace:
    """Return all moves of neurons in :func:`simulate`; reads of connections are not included."""
    checked = check_order(net, order)
    chosen = policy_of(policy)
    aware = chosen is Policy.MIN_WRITE_AWARE
    delay = best_delay(net, checked, memory_of(memory)) if aware else 0
    return Trace(*core().trace(graph_of(net), checked, NUMBERS[chosen], memory, delay))


def delays(memory: int) -> tuple[int, ...]:
    """Return the delays that ``min-write-aware`` tries; a delay of 0 is the policy ``min``."""
    return (0, *sorted({max(1, memory // 8), memory // 4, memory // 2, memory, 2 * memory}))


def best_delay(net: FFNN, order: Ints, memory: int) -> int:
    """Return the delay with the fewest I/Os for ``order``, a checked topological order."""
    aware = Policy.MIN_WRITE_AWARE
    return min(delays(memory), key=lambda d: (_best(net, order, memory, aware, d).total, d))


def graph_of(net: FFNN) -> object:
    """Return the native core's form of the network."""
    return core().Network(net.sources, net.targets, net.is_output)


def memory_of(memory: int) -> int:
    """Return ``memory``; raise :class:`InputError` if it is below 3, the minimum."""
    if memory < LEAST_MEMORY:
        raise InputError(
            f"a fast memory of {memory} values is too small; use {LEAST_MEMORY} or more, for a "
            "connection and its two neurons"
        )
    return memory


def policy_of(name: Policy | str) -> Policy:
    """Return the policy ``name``; raise :class:`InputError` if it is unknown."""
    try:
        return Policy(name)
    except ValueError as error:
        raise InputError(f"unknown policy {name!r}; choose one of {', '.join(Policy)}") from error


def _best(net: FFNN, order: Ints, memory: int, policy: Policy, delay: int | None) -> Traffic:
    graph = graph_of(net)
    tried = delays(memory) if delay is None and policy is Policy.MIN_WRITE_AWARE else (delay or 0,)
    results = [core().simulate(graph, order, NUMBERS[policy], memory, d) for d in tried]
    return Traffic(*min(results, key=sum))
