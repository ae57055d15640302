"""Sparse feed-forward networks (FFNNs), as defined in section II of the paper.

A network is a directed acyclic graph of neurons. Connection ``e`` goes from neuron ``sources[e]``
to neuron ``targets[e]`` with weight ``weights[e]``. A neuron computes
``f(bias + sum of weight * source)``.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tvm_serenity.errors import CycleError, GraphError
from tvm_serenity.sparse.structure import a_cycle, levels, parts

if TYPE_CHECKING:
    import scipy.sparse

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float32]

LARGEST = 2**30
"""Limit on the numbers of connections and of neurons."""


class Activation(StrEnum):
    """The activation function of a neuron."""

    RELU = "relu"
    IDENTITY = "identity"


@dataclass(frozen=True, eq=False)
class FFNN:
    """A valid network of N neurons and W connections.

    ``sources``, ``targets``, ``weights`` (W): the connections, in stored order. ``biases`` (N): the
    bias of each neuron, unused for inputs. ``inputs``, ``outputs``: the input and output neurons,
    in the order of the columns of input and output arrays. A neuron without incoming connections
    that is not an input is a constant ``f(bias)``.

    Raises :class:`GraphError`, which names the neuron or connection, if a neuron number is out of
    range, a weight or bias is not finite, a connection occurs twice, or a neuron is isolated or
    unused; also if the network is not connected, unless ``connected`` is False. Raises
    :class:`CycleError` if connections form a cycle.
    """

    sources: Ints
    targets: Ints
    weights: Floats
    biases: Floats
    inputs: Ints
    outputs: Ints
    activation: Activation = Activation.RELU
    output_activation: Activation = Activation.IDENTITY
    connected: bool = True

    def __post_init__(self) -> None:
        _check_numbers(self)
        _check_graph(self)

    @classmethod
    def from_edges(
        cls,
        edges: Iterable[tuple[int, int, float]],
        biases: ArrayLike | None = None,
        *,
        inputs: Sequence[int] | None = None,
        outputs: Sequence[int] | None = None,
        **options: Any,
    ) -> "FFNN":
        """Return the network of ``(source, target, weight)`` connections, in the given order.

        Neurons are numbered from 0 to the largest number in ``edges``. ``biases`` has one entry per
        neuron; the default is 0. By default, inputs are the neurons without incoming connections,
        and outputs are the neurons without outgoing connections.
        """
        triples = list(edges)
        if not triples:
            raise GraphError("the network has no connections; give at least one")
        sources = np.array([t[0] for t in triples], dtype=np.int64)
        targets = np.array([t[1] for t in triples], dtype=np.int64)
        weights = np.array([t[2] for t in triples], dtype=np.float64)
        return cls.from_arrays(sources, targets, weights, biases, inputs, outputs, **options)

    @classmethod
    def from_arrays(
        cls,
        sources: ArrayLike,
        targets: ArrayLike,
        weights: ArrayLike | None = None,
        biases: ArrayLike | None = None,
        inputs: ArrayLike | None = None,
        outputs: ArrayLike | None = None,
        **options: Any,
    ) -> "FFNN":
        """Return the network of arrays of connections; for the defaults see :meth:`from_edges`."""
        tails, heads = _numbers(sources, "source"), _numbers(targets, "target")
        if not len(tails) or len(tails) != len(heads):
            raise GraphError(
                f"there are {len(tails)} sources and {len(heads)} targets; give one source and one "
                "target per connection, and at least one connection"
            )
        least = int(max(tails.max(), heads.max())) + 1
        offsets = np.zeros(least) if biases is None else np.asarray(biases, dtype=np.float64)
        factors = np.ones(len(tails)) if weights is None else np.asarray(weights)
        count = max(least, len(offsets))
        missing = np.flatnonzero(np.bincount(heads, minlength=count) == 0)
        unused = np.flatnonzero(np.bincount(tails, minlength=count) == 0)
        return cls(
            tails,
            heads,
            factors.astype(np.float32),
            offsets.astype(np.float32),
            _numbers(missing if inputs is None else inputs, "input"),
            _numbers(unused if outputs is None else outputs, "output"),
            **options,
        )

    @classmethod
    def from_layers(
        cls, layers: Sequence[Any], biases: Sequence[ArrayLike] | None = None, **options: Any
    ) -> "FFNN":
        """Return the multi-layer perceptron with layers ``x -> f(A x + b)``.

        A layer is a matrix A of shape (outputs, inputs). In a scipy sparse matrix, each stored
        entry is a connection, even if it is zero; in a dense array, each nonzero entry is.
        Connections are ordered by layer, then target, then source, as in Theorem 1. Neurons are
        numbered layer by layer.
        """
        widths, tails, heads, factors = _stack(layers)
        first = np.cumsum([0, *widths])
        offsets = np.zeros(first[-1])
        if biases is not None:
            if len(biases) != len(layers):
                raise GraphError(
                    f"there are {len(layers)} layers and {len(biases)} bias vectors; give one "
                    "vector per layer"
                )
            for number, vector in enumerate(biases):
                values = np.asarray(vector, dtype=np.float64)
                if values.shape != (widths[number + 1],):
                    raise GraphError(
                        f"the biases of layer {number} have shape {values.shape}; expected "
                        f"({widths[number + 1]},)"
                    )
                offsets[first[number + 1] : first[number + 2]] = values
        return cls.from_arrays(
            tails,
            heads,
            factors,
            offsets,
            np.arange(first[1]),
            np.arange(first[-2], first[-1]),
            **options,
        )

    @property
    def neurons(self) -> int:
        """N, the number of neurons."""
        return len(self.biases)

    @property
    def connections(self) -> int:
        """W, the number of connections."""
        return len(self.weights)

    @cached_property
    def fan_in(self) -> Ints:
        """The number of incoming connections of each neuron."""
        return np.bincount(self.targets, minlength=self.neurons).astype(np.int32)

    @cached_property
    def fan_out(self) -> Ints:
        """The number of outgoing connections of each neuron."""
        return np.bincount(self.sources, minlength=self.neurons).astype(np.int32)

    @cached_property
    def levels(self) -> Ints:
        """The level of each neuron: the length of the longest path to it."""
        return levels(self.neurons, self.sources, self.targets)

    @property
    def given(self) -> int:
        """The number of inputs and constants (neurons that are not computed), the paper's I."""
        return int(np.count_nonzero(self.fan_in == 0))

    @cached_property
    def is_output(self) -> NDArray[np.bool_]:
        """Whether each neuron is an output."""
        marks = np.zeros(self.neurons, dtype=bool)
        marks[self.outputs] = True
        return marks

    def activation_of(self, neuron: int) -> Activation:
        """Return the activation of ``neuron``, which must not be an input."""
        return self.output_activation if self.is_output[neuron] else self.activation

    def forward(self, inputs: ArrayLike) -> NDArray[np.float64]:
        """Return the outputs, computed neuron by neuron in double precision: the specification.

        ``inputs`` has shape (batch, inputs) or (inputs,), the result (batch, outputs) or
        (outputs,).
        """
        given = np.asarray(inputs, dtype=np.float64)
        rows = np.atleast_2d(given)
        result = self.values(rows)[self.outputs].T
        return result[0] if given.ndim == 1 else result

    def values(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values of all neurons (neurons, batch) for the inputs ``rows``.

        ``rows`` has shape (batch, inputs).
        """
        if rows.ndim != 2 or rows.shape[1] != len(self.inputs):
            raise GraphError(
                f"the inputs have shape {rows.shape}; expected {len(self.inputs)} columns"
            )
        values = np.zeros((self.neurons, len(rows)))
        by_target = np.argsort(self.targets, kind="stable")
        first = np.concatenate([[0], np.cumsum(self.fan_in)])
        fed = np.zeros(self.neurons, dtype=bool)
        fed[self.inputs] = True
        values[self.inputs] = rows.T
        for neuron in np.argsort(self.levels, kind="stable"):
            if fed[neuron]:
                continue
            into = by_target[first[neuron] : first[neuron + 1]]
            total = (
                self.biases[neuron]
                + self.weights[into].astype(np.float64) @ (values[self.sources[into]])
            )
            relu = self.activation_of(int(neuron)) is Activation.RELU
            values[neuron] = np.maximum(total, 0) if relu else total
        return values


def _numbers(values: ArrayLike, kind: str) -> Ints:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise GraphError(
            f"{kind}s have shape {array.shape} and type {array.dtype}; give a list of neuron "
            "numbers"
        )
    if array.size and not 0 <= array.min() <= array.max() < LARGEST:
        raise GraphError(
            f"{kind} {array[(array < 0) | (array >= LARGEST)][0]} is not a neuron number; use 0 to "
            f"{LARGEST - 1}"
        )
    return array.astype(np.int32)


def _stack(layers: Sequence[Any]) -> tuple[list[int], Ints, Ints, NDArray[Any]]:
    if not layers:
        raise GraphError("the network has no layers; give at least one matrix")
    widths: list[int] = []
    tails, heads, factors = [], [], []
    begin = 0
    for number, layer in enumerate(layers):
        matrix = layer if hasattr(layer, "tocoo") else np.asarray(layer, dtype=np.float64)
        if len(matrix.shape) != 2:
            raise GraphError(
                f"layer {number} has shape {matrix.shape}; give a matrix (outputs, inputs)"
            )
        rows, columns = matrix.shape
        if widths and widths[-1] != columns:
            raise GraphError(
                f"layer {number} has {columns} inputs, but layer {number - 1} has {widths[-1]} "
                "outputs"
            )
        row, column, data = _entries(matrix)
        by_row = np.lexsort((column, row))
        widths += [rows] if widths else [columns, rows]
        tails.append(begin + column[by_row])
        heads.append(begin + columns + row[by_row])
        factors.append(data[by_row])
        begin += columns
    return (
        widths,
        np.concatenate(tails).astype(np.int32),
        np.concatenate(heads).astype(np.int32),
        np.concatenate(factors),
    )


def _entries(
    matrix: "scipy.sparse.spmatrix | NDArray[Any]",
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    if hasattr(matrix, "tocoo"):
        stored = matrix.tocoo()
        return stored.row, stored.col, stored.data
    row, column = np.nonzero(matrix)
    return row, column, matrix[row, column]


def _check_numbers(net: FFNN) -> None:
    count = net.neurons
    if not len(net.sources) == len(net.targets) == len(net.weights):
        raise GraphError(
            f"there are {len(net.sources)} sources, {len(net.targets)} targets and "
            f"{len(net.weights)} weights; give one of each per connection"
        )
    if not len(net.weights):
        raise GraphError("the network has no connections; give at least one")
    for name in ("sources", "targets", "inputs", "outputs"):
        array = getattr(net, name)
        if array.size and not 0 <= array.min() <= array.max() < count:
            wrong = array[(array < 0) | (array >= count)][0]
            raise GraphError(
                f"{name} contain neuron {wrong}, but the neurons are numbered 0 to {count - 1}"
            )
    for name in ("inputs", "outputs"):
        if len(np.unique(getattr(net, name))) != len(getattr(net, name)):
            raise GraphError(f"{name} contain a neuron twice; list each neuron once")
    bad = np.flatnonzero(~np.isfinite(net.weights))
    if len(bad):
        e = bad[0]
        raise GraphError(
            f"connection {e} ({net.sources[e]} -> {net.targets[e]}) has weight "
            f"{net.weights[e]}; weights must be finite"
        )
    bad = np.flatnonzero(~np.isfinite(net.biases))
    if len(bad):
        raise GraphError(f"neuron {bad[0]} has bias {net.biases[bad[0]]}; biases must be finite")
    keys = net.sources.astype(np.int64) * count + net.targets
    ordered = np.sort(keys)
    twice = np.flatnonzero(ordered[1:] == ordered[:-1])
    if len(twice):
        source, target = divmod(int(ordered[twice[0]]), count)
        raise GraphError(
            f"connection {source} -> {target} occurs twice; give one connection with the sum of "
            "the weights"
        )


def _check_graph(net: FFNN) -> None:
    alone = np.flatnonzero((net.fan_in == 0) & (net.fan_out == 0))
    if len(alone):
        raise GraphError(f"neuron {alone[0]} has no connections; remove it or connect it")
    fed = net.inputs[net.fan_in[net.inputs] > 0]
    if len(fed):
        raise GraphError(f"neuron {fed[0]} is an input but has incoming connections; remove them")
    if len(net.levels) and net.levels.min() < 0:
        cycle = a_cycle(net.neurons, net.sources, net.targets)
        raise CycleError("connections form a cycle: " + " -> ".join(map(str, [*cycle, cycle[0]])))
    vain = np.flatnonzero((net.fan_out == 0) & ~net.is_output)
    if len(vain):
        raise GraphError(
            f"neuron {vain[0]} is unused: it is not an output and has no outgoing connections; "
            "remove it, or make it an output"
        )
    if net.connected:
        part = parts(net.neurons, net.sources, net.targets)
        unreached = np.flatnonzero(part != part[0])
        if len(unreached):
            raise GraphError(
                "the network is not connected: no undirected path joins neurons 0 and "
                f"{unreached[0]}; build one network per component, or pass connected=False"
            )
