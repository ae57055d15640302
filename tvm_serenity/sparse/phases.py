"""A lower bound on I/Os from the network's structure, by the method of Hong and Kung (STOC 1981).

Divide a computation into phases, each of which ends after k reads of neurons. A phase begins with
at most M - 1 neurons in fast memory and reads k more. So it uses at most e(M - 1 + k) connections,
where e(q) is the largest number of connections among any q neurons. The first phase begins with
empty fast memory and uses at most e(k). With P phases, ``W <= e(k) + (P - 1) e(M - 1 + k)``; all
phases but the last read k neurons, so there are at least ``R = k (P - 1) + 1`` reads of neurons.
Each neuron is read at least once, so there are at least ``W + max(N, R)`` reads, and S writes.

e(q) is bounded by the minimum of

* W; half the sum of the q largest degrees; q (q - 1) / 2;
* ``max(X) * pairs(q) + q * r``. The matrix A of connections between two levels is split into a
  rank-one part X and a rest R. pairs(q) is the largest number of pairs among q neurons whose levels
  are joined by connections. r is the spectral radius of the matrix with the entries ``|R| / 2`` for
  each pair of levels: the number of connections is a quadratic form of an indicator vector, and the
  norms of blocks bound the norm of the matrix. X is the mean density, or is proportional to the
  fan-out of the sources.
"""

import numpy as np
from numpy.typing import NDArray

from tvm_serenity.sparse.bounds import bounds
from tvm_serenity.sparse.network import FFNN
from tvm_serenity.sparse.simulate import memory_of

SLACK = 1e-6
"""Relative margin for rounding errors of eigenvalues."""
LARGEST_BLOCK = 8_000_000
"""Largest number of neuron pairs of two levels for which eigenvalues are computed."""

Grid = NDArray[np.float64]


def phase_bound(net: FFNN, memory: int) -> int:
    """Return a lower bound on the I/Os of all orders with ``memory`` values, at least W + N + S."""
    memory_of(memory)
    held = memory - 1
    lengths = np.unique(np.geomspace(1, 2 * net.neurons, 200).astype(np.int64))
    first = most_connections(net, lengths)
    other = most_connections(net, held + lengths)
    phases = np.ceil(np.maximum(0.0, net.connections - first) / other)
    neuron_reads = int((lengths * phases + 1).max())
    return bounds(net).total + max(0, neuron_reads - net.neurons)


def most_connections(net: FFNN, counts: NDArray[np.int64]) -> Grid:
    """Return upper bounds e(q) on the connections among any q neurons, for each q in ``counts``."""
    degrees = np.sort(net.fan_in + net.fan_out)[::-1]
    sums = np.concatenate([[0], np.cumsum(degrees)])
    held = np.minimum(counts, net.neurons)
    most = np.minimum(float(net.connections), np.floor(sums[held] / 2))
    most = np.minimum(most, held * (held - 1) / 2)
    for density, radius, share in _spectra(net):
        bound = density * share * held.astype(np.float64) ** 2 + radius * held
        most = np.minimum(most, np.floor(bound * (1 + SLACK)))
    bounded: Grid = np.maximum(most, 1.0)
    return bounded


def _spectra(net: FFNN) -> list[tuple[float, float, float]]:
    """Return ``(max X, r, pairs(q) / q**2)`` for both choices of X."""
    level = net.levels
    depth = int(level.max()) + 1
    joined = np.unique(np.stack([level[net.sources], level[net.targets]], axis=1), axis=0)
    size = np.bincount(level, minlength=depth)
    if max(size[a] * size[b] for a, b in joined) > LARGEST_BLOCK or depth > 200:
        return []
    # The bound of Mantel holds if only consecutive levels are joined (bipartite), else Turan's.
    share = 0.25 if (joined[:, 1] == joined[:, 0] + 1).all() else (1 - 1 / depth) / 2
    bounds = []
    for follow in (False, True):
        norms = np.zeros((depth, depth))
        density = 0.0
        for a, b in joined:
            block = _block(net, int(a), int(b))
            model = np.full(block.shape, block.mean())
            if follow:
                model = np.repeat(block.mean(axis=1, keepdims=True), block.shape[1], axis=1)
            density = max(density, float(model.max()))
            norms[a, b] = norms[b, a] = _norm(block - model) / 2
        bounds.append((density, float(np.linalg.eigvalsh(norms).max()), share))
    return bounds


def _block(net: FFNN, a: int, b: int) -> Grid:
    level = net.levels
    rank = np.zeros(net.neurons, dtype=np.int64)
    for number in (a, b):
        members = np.flatnonzero(level == number)
        rank[members] = np.arange(len(members))
    inside = (level[net.sources] == a) & (level[net.targets] == b)
    block = np.zeros((np.count_nonzero(level == a), np.count_nonzero(level == b)))
    block[rank[net.sources[inside]], rank[net.targets[inside]]] = 1.0
    return block


def _norm(block: Grid) -> float:
    """Return the spectral norm of ``block``, computed from the smaller Gram matrix."""
    flat = block if block.shape[0] <= block.shape[1] else block.T
    return float(np.sqrt(max(0.0, np.linalg.eigvalsh(flat @ flat.T)[-1])))
