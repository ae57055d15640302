"""Compact Growth: the checker against all orders, its bound, and the search."""

import itertools
import random

import numpy as np
import pytest

from tests.sparse.nets import random_net, random_order
from tvm_serenity.search.outcome import Outcome
from tvm_serenity.sparse import FFNN, bounds, compact_growth, simulate
from tvm_serenity.sparse.growth import grows, least_memory, memory_needed, smallest_memory


def test_the_memory_an_order_needs_is_what_the_simulator_says() -> None:
    for seed in range(400):
        rng = random.Random(seed)
        net = random_net(rng, 25)
        order = random_order(net, rng)
        needed = memory_needed(net, order)
        assert simulate(net, order, max(3, needed)).total == bounds(net).total
        if needed > 3:
            assert simulate(net, order, needed - 1).total > bounds(net).total


def test_bound_and_search_enclose_the_least_of_all_orders() -> None:
    exact = 0
    for seed in range(60):
        net = random_net(random.Random(seed), 5)
        if net.connections > 7:
            continue
        least = min(
            memory_needed(net, order)
            for order in itertools.permutations(range(net.connections))
            if _topological(net, order)
        )
        found = smallest_memory(net)
        assert found.least <= max(3, least) <= found.memory
        assert memory_needed(net, found.order) == found.memory
        exact += max(3, least) == found.memory
    assert exact >= 25


def _topological(net: FFNN, order: tuple[int, ...]) -> bool:
    missing = net.fan_in.copy()
    for e in order:
        if missing[net.sources[e]]:
            return False
        missing[net.targets[e]] -= 1
    return True


def test_grown_networks_are_recognised() -> None:
    net = compact_growth(40, neurons=200, seed=1)
    outcome, order = grows(net, 40)
    assert outcome is Outcome.OPTIMAL
    assert order is not None
    assert simulate(net, order, 40).total == bounds(net).total
    shuffled = random_order(net, random.Random(0))
    scattered = FFNN.from_arrays(net.sources[shuffled], net.targets[shuffled], connected=False)
    assert smallest_memory(scattered).memory < memory_needed(
        scattered, np.arange(scattered.connections)
    )


def test_what_cannot_grow_is_proved_not_to() -> None:
    full = FFNN.from_edges([(a, b, 1.0) for a in range(6) for b in range(6, 12)])
    assert least_memory(full) == 8
    assert grows(full, 7)[0] is Outcome.INFEASIBLE
    assert grows(full, 8)[0] is Outcome.OPTIMAL
    assert smallest_memory(full).outcome is Outcome.OPTIMAL


@pytest.mark.parametrize("memory", [4, 9])
def test_a_chain_of_neurons_needs_three(memory: int) -> None:
    chain = FFNN.from_edges([(i, i + 1, 1.0) for i in range(50)])
    assert smallest_memory(chain).memory == 3
    assert grows(chain, memory)[0] is Outcome.OPTIMAL
