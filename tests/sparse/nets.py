"""Random networks and orders for these tests."""

import random

import numpy as np

from tvm_serenity.sparse.network import FFNN, Ints


def random_net(rng: random.Random, largest: int = 12) -> FFNN:
    """Return a random connected net of any shape: skip connections, several outputs."""
    count = rng.randint(2, largest)
    edges = {(rng.randrange(v), v) for v in range(1, count)}
    edges |= {
        (a, b)
        for _ in range(rng.randint(0, 3 * count))
        for a, b in [sorted(rng.sample(range(count), 2))]
    }
    names = list(range(count))
    rng.shuffle(names)
    listed = sorted(edges)
    rng.shuffle(listed)
    return FFNN.from_edges(
        [(names[a], names[b], rng.uniform(-1, 1)) for a, b in listed],
        [rng.uniform(-1, 1) for _ in range(count)],
    )


def random_order(net: FFNN, rng: random.Random) -> Ints:
    """Return a random topological order of the connections."""
    missing = net.fan_in.copy()
    rest = list(range(net.connections))
    order = []
    while rest:
        ready = [e for e in rest if not missing[net.sources[e]]]
        e = rng.choice(ready)
        order.append(e)
        rest.remove(e)
        missing[net.targets[e]] -= 1
    return np.array(order, dtype=np.int32)
