"""Generates networks: random (appendices A and B of the paper), and Proposition 2's chains.

A seed gives the same network on every machine (numpy's frozen ``RandomState``).
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tvm_serenity.errors import InputError
from tvm_serenity.sparse.network import FFNN

LARGEST_SEED = 2**32 - 1


def random_mlp(widths: Sequence[int], density: float, seed: int = 0) -> FFNN:
    """Return a random perceptron with layers of ``widths`` neurons (appendix A).

    Each neuron except the outputs has k connections to different neurons of the next layer, of
    width n. k is uniform from 1 to ``max(1, ceil(2 * density * n - 1))``, limited to n. So networks
    with a ``density`` above 0.5 are less dense than requested (with 1, about 0.75). Connections are
    ordered by layer, then target. A hidden neuron without incoming connections is a constant; an
    output without incoming connections is removed. Biases are standard normal; weights are standard
    normal, divided by the square root of the mean fan-in.
    """
    sizes = [int(w) for w in widths]
    if len(sizes) < 2 or min(sizes) < 1:
        raise InputError(f"widths {sizes}: give at least two layers, each with at least one neuron")
    if not 0 < density <= 1:
        raise InputError(f"density {density}: the value must be above 0 and at most 1")
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
    """Return the paper's baseline network: ``depth`` layers of ``width`` neurons and one output."""
    return random_mlp([width] * depth + [1], density, seed)


def compact_growth(memory: int, neurons: int = 1000, in_degree: int = 5, seed: int = 0) -> FFNN:
    """Return a network of Compact Growth for a memory of ``memory`` values, M_g (appendix B).

    A bag of neurons starts with ``memory - 2`` inputs. Each of ``neurons`` steps adds a neuron to
    the bag, connects ``in_degree`` other neurons of the bag to it, and removes the last one of
    them. At the end all neurons of the bag are connected to one output. The stored order of
    connections is the order of growth, which needs no temporary I/Os with ``memory`` values. The
    paper's ``in_degree`` is 5 in appendix B, and 4 in the caption of figure 3.
    """
    if not 1 <= in_degree <= memory - 2:
        raise InputError(
            f"in-degree {in_degree} with a memory of {memory} values: the in-degree must be 1 to "
            f"memory - 2 = {memory - 2}"
        )
    if neurons < 0:
        raise InputError(f"{neurons} neurons: the number must be 0 or more")
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
    """Return the network of Proposition 2 for M = ``memory``.

    2M chains of ``hidden`` neurons each connect one input to one output. A layer-by-layer order
    needs at least ``memory * hidden`` writes, a chain-by-chain order needs one.
    """
    if memory < 1 or hidden < 1:
        raise InputError(
            f"chains with memory={memory} and hidden={hidden}: both values must be 1 or more"
        )
    width = 2 * memory
    ones = np.ones((width, 1))
    layers = [ones, *[np.eye(width)] * (hidden - 1), ones.T]
    return FFNN.from_layers(layers)


def random_weights(widths: Sequence[int], seed: int = 0) -> list[NDArray[np.float32]]:
    """Return the dense standard normal matrices (outputs, inputs) of a perceptron's layers."""
    random = _random(seed)
    return [
        random.standard_normal((after, before)).astype(np.float32)
        for before, after in pairwise(widths)
    ]


def _random(seed: int) -> np.random.RandomState:
    if not 0 <= seed <= LARGEST_SEED:
        raise InputError(f"seed {seed}: the value must be 0 to {LARGEST_SEED}")
    return np.random.RandomState(seed)
