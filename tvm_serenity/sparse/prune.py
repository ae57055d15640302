"""Magnitude pruning of multi-layer perceptrons: removes the weights of smallest magnitude."""

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

    ``net``: the network, without isolated and unused neurons. ``inputs`` and ``outputs``: the
    columns of the perceptron's inputs and outputs that remain in ``net``. ``constants``: per output
    column of the perceptron, its constant value, or NaN if ``net`` computes it.
    """

    net: FFNN
    inputs: Ints
    outputs: Ints
    constants: NDArray[np.float32]

    def forward(self, inputs: ArrayLike) -> NDArray[np.float64]:
        """Return the perceptron's outputs (batch, outputs) for the inputs (batch, inputs)."""
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
    """Return the network that keeps the fraction ``density`` of each layer's largest weights.

    ``layers``: matrices of shape (outputs, inputs). ``together``: use one threshold for all layers,
    which may remove all weights of a layer. Of equal weights, the first ones are kept. Raises
    :class:`InputError` if the density is outside (0, 1], and :class:`GraphError` if a weight is not
    finite or no connection reaches an output.
    """
    if not 0 < density <= 1:
        raise InputError(f"density {density}: the value must be above 0 and at most 1")
    matrices = [np.asarray(layer, dtype=np.float32) for layer in layers]
    for number, matrix in enumerate(matrices):
        if matrix.ndim != 2:
            raise GraphError(
                f"layer {number} has shape {matrix.shape}; give a matrix (outputs, inputs)"
            )
        if not np.isfinite(matrix).all():
            raise GraphError(f"layer {number} has a NaN or infinite weight; weights must be finite")
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
    """Return a mask of the fraction ``density`` of the largest values; of equal ones the first."""
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
        raise GraphError(f"the biases have shapes {[v.shape for v in given]}; expected {shapes}")
    return given


def _connected(
    masked: list[NDArray[np.float32]],
    biases: list[NDArray[np.float32]],
    activation: Activation,
    output_activation: Activation,
) -> Pruned:
    """Return the network without isolated and unused neurons, and the values of constant outputs.

    Neurons are removed from the last layer to the first.
    """
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
        raise GraphError("after pruning, no connection reaches an output; raise the density")
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
