"""What the paper claims, on random networks."""

import random

import numpy as np
import pytest

from tests.sparse.nets import random_net, random_order
from tvm_serenity.sparse import (
    FFNN,
    Policy,
    Traffic,
    bandwidth,
    bandwidth_order,
    baseline_mlp,
    bounds,
    chains,
    compact_growth,
    random_mlp,
    simulate,
)
from tvm_serenity.sparse.orders import two_optimal


def test_theorem_1_on_thousands_of_networks() -> None:
    for seed in range(2500):
        rng = random.Random(seed)
        if seed % 2:
            net = random_net(rng, 30)
        else:
            widths = [rng.randint(1, 12) for _ in range(rng.randint(2, 5))]
            net = random_mlp(widths, rng.uniform(0.05, 1), seed)
        limits = bounds(net)
        memory = rng.randint(3, 30)
        assert limits.hold(simulate(net, two_optimal(net), memory)), seed
        found = simulate(net, random_order(net, rng), memory)
        assert found.reads >= limits.reads, seed
        assert found.writes >= limits.writes, seed


def test_min_reads_least() -> None:
    for seed in range(1000):
        rng = random.Random(seed)
        net = random_net(rng, 30)
        order = random_order(net, rng)
        memory = rng.randint(3, 12)
        least = simulate(net, order, memory, Policy.MIN).reads
        assert least <= simulate(net, order, memory, Policy.LRU).reads
        assert least <= simulate(net, order, memory, Policy.RR).reads


@pytest.mark.parametrize("policy", Policy)
def test_lemma_1_two_layers_in_memory_need_nothing_more(policy: Policy) -> None:
    net = random_mlp([6, 5, 7, 3], 0.6, seed=2)
    assert simulate(net, two_optimal(net), 5 + 7 + 1, Policy.MIN).total == bounds(net).total
    assert simulate(net, two_optimal(net), net.neurons + 1, policy).total == bounds(net).total


def test_lemma_2_and_3_are_tight() -> None:
    tree = FFNN.from_edges([(i, 1000, 1.0) for i in range(1000)])
    found = simulate(tree, range(1000), 3)
    assert found.reads == bounds(tree).most_reads == 2 * 1000 + 1
    assert found.total == bounds(tree).most_total
    fan = FFNN.from_edges([(0, 1, 1.0)] + [(1, 2 + i, 1.0) for i in range(500)])
    assert simulate(fan, range(501), 3).writes == 500 >= 0.99 * bounds(fan).most_writes


@pytest.mark.parametrize(("memory", "hidden"), [(3, 1), (5, 4), (10, 12)])
def test_proposition_2_layers_write_chains_do_not(memory: int, hidden: int) -> None:
    net = chains(memory, hidden)
    assert simulate(net, two_optimal(net), memory).writes >= memory * hidden
    by_chain = sorted(range(net.connections), key=lambda e: _chain(net, e, 2 * memory, hidden))
    assert simulate(net, by_chain, max(4, memory)).writes == 1


def _chain(net: FFNN, connection: int, width: int, hidden: int) -> tuple[int, int]:
    """The chain a connection is of, and its place in it."""
    neuron = int(net.targets[connection])
    if neuron == net.neurons - 1:
        return (int(net.sources[connection]) - 1) % width, hidden
    return (neuron - 1) % width, (neuron - 1) // width


@pytest.mark.parametrize("memory", [100, 300, 500])
def test_theorem_2_compact_growth_needs_its_memory_and_no_less(memory: int) -> None:
    """One value less is enough only where an input waits in the bag, unread, for the output."""
    for seed in range(12):
        net = compact_growth(memory, seed=seed)
        order = np.arange(net.connections)
        least = Traffic(net.connections + net.neurons, 1)
        assert simulate(net, order, memory) == least
        drawn = net.sources[net.targets != net.outputs[0]]
        waiting = set(net.inputs.tolist()) - set(drawn.tolist())
        assert (simulate(net, order, memory - 1).total > least.total) == (not waiting)


def test_corollary_1_bandwidth_plus_2_is_enough() -> None:
    for seed in range(300):
        rng = random.Random(seed)
        reach = rng.randint(1, 9)
        count = rng.randint(reach + 1, 40)
        edges = {(v - rng.randint(1, min(reach, v)), v) for v in range(1, count) for _ in range(3)}
        net = FFNN.from_edges([(a, b, 1.0) for a, b in sorted(edges)], connected=False)
        k = bandwidth(net, range(count))
        assert k <= reach
        order = bandwidth_order(net, range(count))
        assert simulate(net, order, k + 2).total == bounds(net).total


def test_baseline_is_as_appendix_a_says() -> None:
    net = baseline_mlp(density=0.1, seed=3)
    assert net.neurons == 2001
    assert len(net.inputs) == 500
    fan_out = net.fan_out[:1500]
    assert fan_out.min() == 1
    assert fan_out.max() == 99
    assert abs(fan_out.mean() - 50) < 3
    assert (net.fan_out[1500:2000] == 1).all()
    other = baseline_mlp(density=0.1, seed=3)
    assert np.array_equal(net.sources, other.sources)
    assert np.array_equal(net.weights, other.weights)
