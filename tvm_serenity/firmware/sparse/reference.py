"""The outputs of a sparse network in single precision, added up in a given order of connections.

This is the naive specification of the firmware: it has no memories, and shares no code with the
words that the interpreter executes.
"""

from collections.abc import Sequence

import numpy as np

from tvm_serenity.sparse import FFNN, Activation
from tvm_serenity.sparse.network import Floats


def outputs(net: FFNN, order: Sequence[int], inputs: Floats) -> Floats:
    """Return the outputs of ``net`` for one vector of ``inputs``, bit by bit as the core's.

    Each product and each sum is rounded to float32; a neuron begins with its bias.
    """
    values = net.biases.astype(np.float32)
    missing = net.fan_in.copy()

    def complete(neuron: int) -> None:
        if net.activation_of(neuron) is Activation.RELU and values[neuron] < 0:
            values[neuron] = np.float32(0)

    for neuron in np.flatnonzero(net.fan_in == 0).tolist():
        complete(neuron)
    values[net.inputs] = inputs
    for e in order:
        source, target = int(net.sources[e]), int(net.targets[e])
        values[target] += net.weights[e] * values[source]
        missing[target] -= 1
        if not missing[target]:
            complete(target)
    return values[net.outputs]
