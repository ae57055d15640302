"""Multi-layer perceptrons after magnitude pruning, which removes the smallest weights."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tvm_serenity.errors import GraphError, InputError
from tvm_serenity.sparse.network import FFNN, Activation, Ints


@dataclass(frozen=True)
class Pruned:
    """A pruned perceptron.

    ``net`` has no isolated and no unused neuron. ``inputs`` and ``outputs``: the columns of the
    perceptron's inputs and outputs in ``net``. The other outputs are ``constants`` (by column; nan
    if the output is computed).
    """

    net: FFNN
    inputs: Ints
    outputs: Ints
    constants: NDArray[np.float32]

    def forward(self, inputs: ArrayLike) -> NDArray[np.float64]:
        """Return the perceptron's outputs: ``(batch, outputs)`` for ``(batch, inputs)``."""
        rows = np.atleast_2d(np.asarray(inputs))
        outputs = np.repeat(self.constants[None, :].astype(np.float64), len(rows), axis=0)
        outputs[:, self.outputs] = self.net.forward(rows[:, self.inputs])
        return outputs


def prune(
    layers: Sequence[ArrayLike],
    biases: Sequence[ArrayLike] | None = None,
    density: float = 1.0,
    activation: Activation = Activation.RELU,
    output_activation: Activation = Activation.IDENTITY,
    *,
    together: bool = False,
) -> Pruned:
    """Return the network of the ``density * weights`` largest weights of each layer.

    ``layers``: ``(outputs, inputs)`` each. ``together``: one threshold for all layers, which may
    leave nothing of one. Of equal weights the earlier ones are kept. Raises :class:`InputError` if
    the density is outside (0, 1], :class:`GraphError` if a weight is not finite or no connection
    reaches an output.
    """
    if not 0 < density <= 1:
        raise InputError(f"density {density}: it must be above 0 and at most 1")
    matrices = [np.asarray(layer, dtype=np.float32) for layer in layers]
    for number, matrix in enumerate(matrices):
        if matrix.ndim != 2:
            raise GraphError(f"layer {number} has shape {matrix.shape}: a matrix is expected")
        if not np.isfinite(matrix).all():
            raise GraphError(f"layer {number} has a weight that is not finite")
    sizes = [np.abs(matrix).ravel() for matrix in matrices]
    parts = [np.concatenate(sizes)] if together else sizes
    kept = np.concatenate([_largest(part, density) for part in parts])
    masked, begin = [], 0
    for matrix in matrices:
        mask = kept[begin : begin + matrix.size].reshape(matrix.shape)
        masked.append(np.where(mask, matrix, 0))
        begin += matrix.size
    return _connected(masked, _biases(matrices, biases), activation, output_activation)


def _largest(sizes: NDArray[Any], density: float) -> NDArray[np.bool_]:
    """Return a mask of the largest values; of equal ones the first."""
    count = max(1, round(density * len(sizes)))
    threshold = np.partition(sizes, len(sizes) - count)[len(sizes) - count]
    mask: NDArray[np.bool_] = sizes > threshold
    mask[np.flatnonzero(sizes == threshold)[: count - np.count_nonzero(mask)]] = True
    return mask


def _biases(
    matrices: Sequence[NDArray[np.float32]], biases: Sequence[ArrayLike] | None
) -> list[NDArray[np.float32]]:
    if biases is None:
        return [np.zeros(len(matrix), dtype=np.float32) for matrix in matrices]
    given = [np.asarray(vector, dtype=np.float32) for vector in biases]
    shapes = [(len(matrix),) for matrix in matrices]
    if [vector.shape for vector in given] != shapes:
        raise GraphError(f"biases have shapes {[v.shape for v in given]}, expected {shapes}")
    return given


def _connected(
    masked: list[NDArray[np.float32]],
    biases: list[NDArray[np.float32]],
    activation: Activation,
    output_activation: Activation,
) -> Pruned:
    """Remove isolated and unused neurons, last layer first; keep constants."""
    wanted = np.ones(len(masked[-1]), dtype=bool)
    for matrix in reversed(masked):
        matrix[~wanted] = 0
        wanted = (matrix != 0).any(axis=0)
    reached = (masked[-1] != 0).any(axis=1)
    widths = [masked[0].shape[1], *(len(matrix) for matrix in masked)]
    first = np.cumsum([0, *widths])
    alive = [(matrix != 0).any(axis=0) for matrix in masked] + [reached]
    kept = np.concatenate(alive)
    if not reached.any():
        raise GraphError("the pruned network computes nothing: no connection reaches an output")
    number = np.cumsum(kept) - 1
    tails, heads, factors = [], [], []
    for layer, matrix in enumerate(masked):
        target, source = np.nonzero(matrix)
        tails.append(number[first[layer] + source])
        heads.append(number[first[layer + 1] + target])
        factors.append(matrix[target, source])
    offsets = np.concatenate([np.zeros(widths[0], dtype=np.float32), *biases])
    net = FFNN.from_arrays(
        np.concatenate(tails),
        np.concatenate(heads),
        np.concatenate(factors),
        offsets[kept],
        number[np.flatnonzero(alive[0])],
        number[first[-2] + np.flatnonzero(reached)],
        activation=activation,
        output_activation=output_activation,
        connected=False,
    )
    last = biases[-1] if output_activation is Activation.IDENTITY else np.maximum(biases[-1], 0)
    return Pruned(
        net,
        np.flatnonzero(alive[0]).astype(np.int32),
        np.flatnonzero(reached).astype(np.int32),
        np.where(reached, np.float32("nan"), last).astype(np.float32),
    )
