"""Computes the memory M with which a network needs no temporary I/Os (section V, Theorem 2).

A computation without temporary I/Os reads each neuron once and keeps it until its last use. So in
an order of the connections, a neuron is live from its first to its last use, and M values suffice
if at most M - 1 neurons are live at any time (``memory_needed``). An order is a proof for its M.
The live intervals are a path decomposition of the network, so M is at least the network's
degeneracy plus 2 (``least_memory``). ``smallest_memory`` searches for the smallest M.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tvm_serenity.search.outcome import Outcome
from tvm_serenity.sparse.check import check_order, is_topological
from tvm_serenity.sparse.network import FFNN, Ints
from tvm_serenity.sparse.orders.greedy import presets, resident
from tvm_serenity.sparse.orders.simple import two_optimal
from tvm_serenity.sparse.simulate import LEAST_MEMORY, memory_of


@dataclass(frozen=True)
class Growth:
    """The smallest known memory M without temporary I/Os.

    ``order``: an order for ``memory`` values. ``least``: a lower bound on M. ``outcome``: *optimal*
    if ``memory`` equals the bound, else *feasible*, or *timeout* if time ended the search.
    """

    memory: int
    order: Ints
    least: int
    outcome: Outcome


def memory_needed(net: FFNN, order: ArrayLike) -> int:
    """Return the smallest M with which ``order`` needs only W + N reads and S writes."""
    return _needed(net, check_order(net, order))


def _needed(net: FFNN, order: Ints) -> int:
    ends = np.stack([net.sources[order], net.targets[order]], axis=1).ravel()
    position = np.repeat(np.arange(net.connections), 2)
    first = np.full(net.neurons, net.connections)
    last = np.full(net.neurons, -1)
    np.minimum.at(first, ends, position)
    np.maximum.at(last, ends, position)
    begun = np.bincount(first, minlength=net.connections)
    ended = np.bincount(last + 1, minlength=net.connections + 1)
    return int(np.cumsum(begun - ended[:-1]).max()) + 1


def least_memory(net: FFNN) -> int:
    """Return a lower bound on M for all orders without temporary I/Os: the degeneracy plus 2.

    When the first neuron of a subgraph dies, all its neighbours in the subgraph are live.
    """
    neighbours: list[set[int]] = [set() for _ in range(net.neurons)]
    for s, t in zip(net.sources.tolist(), net.targets.tolist(), strict=True):
        neighbours[s].add(t)
        neighbours[t].add(s)
    buckets: list[set[int]] = [set() for _ in range(max(map(len, neighbours)) + 1)]
    for neuron, near in enumerate(neighbours):
        buckets[len(near)].add(neuron)
    degeneracy = degree = 0
    for _ in range(net.neurons):
        degree = max(0, degree - 1)
        while not buckets[degree]:
            degree += 1
        degeneracy = max(degeneracy, degree)
        neuron = buckets[degree].pop()
        for other in neighbours[neuron]:
            buckets[len(neighbours[other])].remove(other)
            neighbours[other].remove(neuron)
            buckets[len(neighbours[other])].add(other)
    return max(LEAST_MEMORY, degeneracy + 2)


def grows(net: FFNN, memory: int, time_limit_s: float | None = None) -> tuple[Outcome, Ints | None]:
    """Return whether ``net`` can be computed without temporary I/Os with ``memory`` values.

    *optimal*: it can; the order is the proof. *infeasible*: it is proved that it cannot.
    *timeout*: no order was found. The order is None unless the outcome is *optimal*.
    """
    memory_of(memory)
    if memory < least_memory(net):
        return Outcome.INFEASIBLE, None
    growth = smallest_memory(net, time_limit_s, enough=memory)
    if growth.memory <= memory:
        return Outcome.OPTIMAL, growth.order
    return Outcome.TIMEOUT, None


def smallest_memory(
    net: FFNN,
    time_limit_s: float | None = None,
    enough: int = 0,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Growth:
    """Search for the smallest M without temporary I/Os, and return the result.

    The search tries the stored order (if it is topological) and the two-optimal order, then greedy
    orders for less and less memory. It ends when M is at most ``enough`` or equals the lower bound,
    or after ``TRIES`` greedy orders in a row that do not improve M.
    """
    end = math.inf if time_limit_s is None else time.perf_counter() + time_limit_s
    least = least_memory(net)
    best = two_optimal(net)
    stored = np.arange(net.connections, dtype=np.int32)
    if is_topological(net, stored) and _needed(net, stored) <= _needed(net, best):
        best = stored
    memory = _needed(net, best)
    failed, tried = 0, presets(net)
    for attempt in range(10**9):
        if memory <= max(least, enough) or failed >= TRIES or time.perf_counter() > end:
            break
        noise = 0.0 if attempt < len(tried) else 0.1
        weights = tried[attempt % len(tried)]
        target = max(LEAST_MEMORY, memory - 1 - failed % 4)
        left = end - time.perf_counter()
        order = resident(net, target, weights, noise=noise, seed=seed + attempt, seconds=left)
        if order is None:
            break
        failed += 1
        if _needed(net, order) < memory:
            best, memory, failed = order, _needed(net, order), 0
            if progress is not None:
                progress(memory)
    timed_out = time.perf_counter() > end
    proved = Outcome.OPTIMAL if memory == least else Outcome.FEASIBLE
    return Growth(memory, best, least, Outcome.TIMEOUT if timed_out and memory > least else proved)


TRIES = 24
"""Number of consecutive greedy orders without an improvement that ends the search."""
