"""The native simulator against the naive one, and its trace."""

import random

import numpy as np
import pytest

from tests.sparse.nets import random_net, random_order
from tvm_serenity.errors import InputError
from tvm_serenity.sparse import FFNN, Policy, Traffic, baseline_mlp, reference, simulate, trace


@pytest.mark.parametrize("policy", Policy)
def test_random_orders_as_the_naive_simulator(policy: Policy) -> None:
    for seed in range(1500):
        rng = random.Random(seed)
        net = random_net(rng)
        order = random_order(net, rng)
        memory = rng.randint(3, 9)
        delay = rng.randint(0, 6) if policy is Policy.MIN_WRITE_AWARE else 0
        expected = reference.simulate(net, order.tolist(), memory, policy, delay)
        assert simulate(net, order, memory, policy, delay) == expected, seed


@pytest.mark.parametrize("policy", Policy)
def test_a_trace_moves_what_is_counted(policy: Policy) -> None:
    net = baseline_mlp(40, 3, 0.2, seed=1)
    order = np.arange(net.connections, dtype=np.int32)
    found = trace(net, order, 12, policy)
    held: set[int] = set()
    written: set[int] = set()
    for neuron, kind in zip(found.neurons.tolist(), found.kinds.tolist(), strict=True):
        assert (neuron in held) == (kind != 0)
        held ^= {neuron}
        written |= {neuron} if kind == 1 else set()
        assert len(held) <= 11
    counted = Traffic(
        net.connections + int(np.sum(found.kinds == 0)), int(np.sum(found.kinds == 1))
    )
    assert counted == simulate(net, order, 12, policy)
    assert set(net.outputs.tolist()) <= written
    assert not held or policy in (Policy.LRU, Policy.RR)


def test_the_other_endpoint_is_pinned() -> None:
    """Algorithm 1 taken literally would evict 2, the oldest, to load 1 for 1 -> 2."""
    net = FFNN.from_edges([(0, 2, 1.0), (0, 3, 1.0), (1, 2, 1.0)])
    assert simulate(net, [0, 1, 2], 4, "lru") == Traffic(3 + 4, 2)


def test_min_write_aware_is_never_worse_than_min() -> None:
    better = 0
    for seed in range(20):
        net = baseline_mlp(100, 3, 0.03, seed)
        order = np.arange(net.connections)
        aware = simulate(net, order, 20, Policy.MIN_WRITE_AWARE).total
        plain = simulate(net, order, 20, Policy.MIN).total
        assert aware <= plain
        better += aware < plain
    assert better > 10


@pytest.mark.parametrize(
    ("memory", "order", "policy", "message"),
    [
        (2, [0, 1], "min", "use 3 or more"),
        (3, [1, 0], "min", r"connection 1 \(1 -> 2\) comes before connection 0 \(0 -> 1\)"),
        (3, [0, 0], "min", "connection 0 twice"),
        (3, [0], "min", r"has shape \(1,\)"),
        (3, [0, 2], "min", "connection numbers 0 to 2; they must be 0 to 1"),
        (3, [0, 1], "fifo", "min, min-write-aware, lru, rr"),
    ],
)
def test_what_cannot_be_simulated(memory: int, order: list[int], policy: str, message: str) -> None:
    net = FFNN.from_edges([(0, 1, 1.0), (1, 2, 1.0)])
    with pytest.raises(InputError, match=message):
        simulate(net, order, memory, policy)
