"""I/Os of an order under an eviction policy: Algorithm 1 of the paper, made precise.

Fast memory holds M values: one slot for the current connection, M - 1 for neurons. Each
connection is read once. A neuron that is missing is read; while one endpoint of a connection is
loaded the other is pinned. A neuron is dirty after each update. Evicting it costs a write where it
is dirty and used again; an output is written once it is complete, when it leaves.

===================  ==========================================================================
``min``              evicts the value used farthest in the future (Belady 1966): fewest reads
``min-write-aware``  ``min``, a dirty value ranking as if it were used some connections sooner;
                     the best of several delays. Least reads plus writes is NP-hard offline
``lru``              the value used least recently, dead or not
``rr``               the value in the slot at a pointer that goes round, dead or not
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
"""The policies' numbers in the native core."""


@dataclass(frozen=True)
class Traffic:
    """The I/Os of an inference: reads (of connections too) and writes."""

    reads: int
    writes: int

    @property
    def total(self) -> int:
        """Reads and writes."""
        return self.reads + self.writes


@dataclass(frozen=True)
class Trace:
    """The moves, in order: the position in the order, the neuron, and the kind of move.

    ``kinds``: 0 read, 1 written, 2 dropped without a write. Moves at the end have position W.
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

    ``delay``: of a dirty value under ``min-write-aware``, in connections; default: the best of
    ``delays(memory)``. Raises :class:`InputError` if the order is not topological or the memory
    holds fewer than 3 values.
    """
    checked = check_order(net, order)
    return _best(net, checked, memory_of(memory), policy_of(policy), delay)


def trace(net: FFNN, order: ArrayLike, memory: int, policy: Policy | str = Policy.MIN) -> Trace:
    """Return every move of :func:`simulate`; reads of connections are not listed."""
    checked = check_order(net, order)
    chosen = policy_of(policy)
    aware = chosen is Policy.MIN_WRITE_AWARE
    delay = best_delay(net, checked, memory_of(memory)) if aware else 0
    return Trace(*core().trace(graph_of(net), checked, NUMBERS[chosen], memory, delay))


def delays(memory: int) -> tuple[int, ...]:
    """Return the delays ``min-write-aware`` tries; 0 is ``min`` itself."""
    return (0, *sorted({max(1, memory // 8), memory // 4, memory // 2, memory, 2 * memory}))


def best_delay(net: FFNN, order: Ints, memory: int) -> int:
    """Return the delay with the fewest I/Os for a checked order."""
    aware = Policy.MIN_WRITE_AWARE
    return min(delays(memory), key=lambda d: (_best(net, order, memory, aware, d).total, d))


def graph_of(net: FFNN) -> object:
    """Return the network as the native core holds it."""
    return core().Network(net.sources, net.targets, net.is_output)


def memory_of(memory: int) -> int:
    """Return ``memory``; raise :class:`InputError` below 3, the least for any computation."""
    if memory < LEAST_MEMORY:
        raise InputError(
            f"fast memory of {memory} values is too small: a connection with its two neurons needs "
            f"{LEAST_MEMORY}"
        )
    return memory


def policy_of(name: Policy | str) -> Policy:
    """Return the policy of that name; raise :class:`InputError` if it is unknown."""
    try:
        return Policy(name)
    except ValueError as error:
        raise InputError(f"unknown policy {name!r}; choose one of {', '.join(Policy)}") from error


def _best(net: FFNN, order: Ints, memory: int, policy: Policy, delay: int | None) -> Traffic:
    graph = graph_of(net)
    tried = delays(memory) if delay is None and policy is Policy.MIN_WRITE_AWARE else (delay or 0,)
    results = [core().simulate(graph, order, NUMBERS[policy], memory, d) for d in tried]
    return Traffic(*min(results, key=sum))
