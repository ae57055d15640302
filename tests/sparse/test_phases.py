"""The phase bound holds, and is better than W + N + S where networks are dense."""

import itertools
import random

import numpy as np

from tests.sparse.nets import random_net, random_order
from tvm_serenity.sparse import FFNN, baseline_mlp, bounds, simulate
from tvm_serenity.sparse.orders import Annealing, OrderOptions, order
from tvm_serenity.sparse.phases import most_connections, phase_bound


def test_most_connections_bounds_every_subset() -> None:
    for seed in range(40):
        net = random_net(random.Random(seed), 9)
        bound = most_connections(net, np.arange(1, net.neurons + 1))
        for count in range(1, net.neurons + 1):
            most = max(
                int(np.sum(np.isin(net.sources, chosen) & np.isin(net.targets, chosen)))
                for chosen in itertools.combinations(range(net.neurons), count)
            )
            assert most <= bound[count - 1], (seed, count)


def test_no_order_is_below_the_bound() -> None:
    for seed in range(60):
        rng = random.Random(seed)
        net = random_net(rng, 30)
        memory = rng.randint(3, 12)
        found = order(net, OrderOptions(memory, annealing=Annealing(200)), "auto").total
        found = min(found, simulate(net, random_order(net, rng), memory).total)
        assert bounds(net).total <= phase_bound(net, memory) <= found


def test_dense_networks_need_more_than_theorem_1_says() -> None:
    full = FFNN.from_layers([np.ones((60, 60)), np.ones((60, 60))])
    best = order(full, OrderOptions(12, annealing=Annealing(100)), "auto").total
    assert bounds(full).total < phase_bound(full, 12) <= best
    assert phase_bound(full, 12) - bounds(full).total > 0.5 * (best - bounds(full).total)
    sparse = baseline_mlp(60, 3, 0.05)
    assert phase_bound(sparse, 20) == bounds(sparse).total
