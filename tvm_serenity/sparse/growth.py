"""Compact Growth: which networks need no temporary I/O with M values (section V, Theorem 2).

A computation without temporary I/O reads each neuron once and holds it until its last use: in an
order of the connections a neuron is live from its first use to its last. M is enough for an order
if at most M - 1 neurons are live at once (``memory_needed``); an order is a proof that it is.
Live intervals are a path decomposition of the network, so M is at least its degeneracy plus 2
(``least_memory``). In between, ``smallest_memory`` searches.
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
    """The smallest M found without temporary I/O, its order, and a lower bound on M.

    ``outcome``: optimal if both are equal, else feasible; timeout if the time ended the search.
    """

    memory: int
    order: Ints
    least: int
    outcome: Outcome


def memory_needed(net: FFNN, order: ArrayLike) -> int:
    """Return the smallest M with which ``order`` takes W + N reads and S writes."""
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
    """Return a lower bound on M for orders without temporary I/O: degeneracy + 2.

    When the first neuron of a subgraph is released, all its neighbours there are live.
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
    """Return whether ``net`` can be computed with N + W reads and S writes at ``memory``.

    Optimal: yes, with an order as proof. Infeasible: proved that it cannot. Timeout: not found.
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
    """Return the smallest M that a search finds, at most that of a valid stored order.

    The search tries the stored and the two-optimal order, then greedy residency with less and less
    memory. It stops at ``enough``, at the bound, or after ``TRIES`` greedy orders in a row that
    need more.
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
        room = max(LEAST_MEMORY, memory - 1 - failed % 4)
        left = end - time.perf_counter()
        made = resident(net, room, weights, noise=noise, seed=seed + attempt, seconds=left)
        if made is None:
            break
        failed += 1
        if _needed(net, made) < memory:
            best, memory, failed = made, _needed(net, made), 0
            if progress is not None:
                progress(memory)
    over = time.perf_counter() > end
    proved = Outcome.OPTIMAL if memory == least else Outcome.FEASIBLE
    return Growth(memory, best, least, Outcome.TIMEOUT if over and memory > least else proved)


TRIES = 24
"""Consecutive failed greedy orders that end the search for less memory."""
