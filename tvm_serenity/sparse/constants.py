"""Folds the constants of a network, the neurons that do not depend on inputs, into biases."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tvm_serenity.sparse.network import FFNN
from tvm_serenity.sparse.structure import reached


@dataclass(frozen=True)
class Folded:
    """The constants of a network of N neurons.

    ``varies`` (N): whether each neuron depends on an input. ``values`` (N): the values of the
    constant neurons. ``biases`` (N): the biases with the contributions of constant sources added,
    so that the connections of constant sources are no longer needed.
    """

    varies: NDArray[np.bool_]
    values: NDArray[np.float64]
    biases: NDArray[np.float32]


def folded(net: FFNN) -> Folded:
    """Return the constants of ``net``, and the biases that include them."""
    varies = reached(net.neurons, net.sources, net.targets, net.inputs)
    if varies.all():
        return Folded(varies, np.zeros(net.neurons), net.biases)
    values = net.values(np.zeros((1, len(net.inputs))))[:, 0]
    constant = ~varies[net.sources]
    biases = net.biases.astype(np.float64)
    np.add.at(
        biases,
        net.targets[constant],
        net.weights[constant] * values[net.sources[constant]],
    )
    return Folded(varies, values, biases.astype(np.float32))
