"""Random networks: appendices A and B of the paper, Proposition 2's chains, pruned perceptrons.

The same seed gives the same network on every machine (numpy's frozen ``RandomState``).
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tvm_serenity.errors import InputError
from tvm_serenity.sparse.network import FFNN

LARGEST_SEED = 2**32 - 1


def random_mlp(widths: Sequence[int], density: float, seed: int = 0) -> FFNN:
    """Return a random perceptron with layers of ``widths`` (appendix A).

    Each neuron but the outputs gets k outgoing connections to different neurons of the next layer,
    k uniform from 1 to ``max(1, ceil(2 * density * next - 1))``, or all ``next`` if k is larger:
    above a density of one half, networks are less dense than requested (at 1, three quarters).
    Connections are ordered by layer and target. A hidden neuron without inputs is a constant; an
    output without inputs is removed. Weights and biases are standard normal, weights divided by the
    root of the mean fan-in.
    """
    sizes = [int(w) for w in widths]
    if len(sizes) < 2 or min(sizes) < 1:
        raise InputError(f"widths {sizes}: give two layers or more, of one neuron or more each")
    if not 0 < density <= 1:
        raise InputError(f"density {density}: it must be above 0 and at most 1")
    random = _random(seed)
    first = np.cumsum([0, *sizes])
    sources, targets = [], []
    for layer, (width, following) in enumerate(pairwise(sizes)):
        most = max(1, int(np.ceil(2 * density * following - 1 - 1e-9)))
        for neuron in range(width):
            count = min(following, random.randint(1, most + 1))
            chosen = np.sort(random.permutation(following)[:count])
            sources.append(np.full(count, first[layer] + neuron))
            targets.append(first[layer + 1] + chosen)
    tails, heads = np.concatenate(sources), np.concatenate(targets)
    by_target = np.lexsort((tails, heads))
    tails, heads = tails[by_target], heads[by_target]
    reached = np.unique(heads)
    kept = np.concatenate([np.arange(first[-2]), reached[reached >= first[-2]]])
    number = np.full(first[-1], -1)
    number[kept] = np.arange(len(kept))
    weights = random.standard_normal(len(tails)) / np.sqrt(len(tails) / len(reached))
    biases = random.standard_normal(len(kept))
    return FFNN.from_arrays(
        number[tails],
        number[heads],
        weights,
        biases,
        np.arange(first[1]),
        np.arange(first[-2], len(kept)),
        connected=False,
    )


def baseline_mlp(width: int = 500, depth: int = 4, density: float = 0.1, seed: int = 0) -> FFNN:
    """Return the paper's baseline: ``depth`` layers of ``width`` neurons, then one output."""
    return random_mlp([width] * depth + [1], density, seed)


def compact_growth(memory: int, neurons: int = 1000, in_degree: int = 5, seed: int = 0) -> FFNN:
    """Return a network of Compact Growth for ``memory`` (M_g) values (appendix B).

    The bag starts with ``memory - 2`` inputs. Each of ``neurons`` steps adds a neuron, connects
    ``in_degree`` others of the bag to it, and removes the last of those; at the end one output
    takes the whole bag. The stored order of connections is the order of growth, which needs no
    temporary I/O with ``memory`` values. The paper gives 5 in appendix B and 4 in the caption of
    figure 3 for ``in_degree``.
    """
    if not 1 <= in_degree <= memory - 2:
        raise InputError(f"in-degree {in_degree}: from 1 to the {memory - 2} neurons of the bag")
    if neurons < 0:
        raise InputError(f"{neurons} neurons: it must be 0 or more")
    random = _random(seed)
    bag = list(range(memory - 2))
    sources: list[int] = []
    targets: list[int] = []
    count = len(bag)
    for _ in range(neurons):
        chosen = random.permutation(len(bag))[:in_degree]
        sources += [bag[slot] for slot in chosen]
        targets += [count] * in_degree
        bag[chosen[-1]] = count
        count += 1
    sources += bag
    targets += [count] * len(bag)
    weights = random.standard_normal(len(sources)) / np.sqrt(in_degree)
    return FFNN.from_arrays(
        sources, targets, weights, random.standard_normal(count + 1), connected=False
    )


def chains(memory: int, hidden: int) -> FFNN:
    """Return Proposition 2's network: 2M chains of ``hidden`` neurons between one input and output.

    Layer by layer it needs at least ``memory * hidden`` writes, chain by chain one.
    """
    if memory < 1 or hidden < 1:
        raise InputError("chains need a memory of 1 value or more, and 1 hidden layer or more")
    width = 2 * memory
    ones = np.ones((width, 1))
    layers = [ones, *[np.eye(width)] * (hidden - 1), ones.T]
    return FFNN.from_layers(layers)


def random_weights(widths: Sequence[int], seed: int = 0) -> list[NDArray[np.float32]]:
    """Return dense standard normal matrices ``(outputs, inputs)`` of a perceptron."""
    random = _random(seed)
    return [
        random.standard_normal((after, before)).astype(np.float32)
        for before, after in pairwise(widths)
    ]


def _random(seed: int) -> np.random.RandomState:
    if not 0 <= seed <= LARGEST_SEED:
        raise InputError(f"seed {seed}: it must be 0 to {LARGEST_SEED}")
    return np.random.RandomState(seed)
