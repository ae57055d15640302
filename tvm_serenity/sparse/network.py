"""A sparse feed-forward network (FFNN): section II of the paper.

Any directed acyclic graph of neurons: connection ``e`` goes from neuron ``sources[e]`` to neuron
``targets[e]`` with ``weights[e]``. A neuron computes ``f(bias + sum of weight * source)``.
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
"""The limit on connections and on neurons."""


class Activation(StrEnum):
    """The activation of a neuron's sum."""

    RELU = "relu"
    IDENTITY = "identity"


@dataclass(frozen=True, eq=False)
class FFNN:
    """A checked network of N neurons and W connections.

    ``sources``, ``targets``, ``weights`` (W): the connections, in stored order. ``biases`` (N): of
    each neuron, unused for inputs. ``inputs``: the input neurons, in the order of the caller's
    columns; ``outputs`` likewise. A neuron without incoming connections that is not an input is a
    constant ``f(bias)``.

    Raises :class:`GraphError` (:class:`CycleError`), which names the neuron or connection, if a
    number is out of range, a weight or bias is not finite, a connection is duplicate, a neuron is
    isolated or unused, connections form a cycle, or, unless ``connected`` is False, the network is
    not connected.
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
        """Return the network of ``(source, target, weight)`` connections in the given order.

        Neurons are 0 to the largest number; ``biases`` (default 0) has one entry for each. Inputs
        default to the neurons without incoming, outputs to those without outgoing connections.
        """
        triples = list(edges)
        if not triples:
            raise GraphError("a network without connections: nothing to compute")
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
        """Return the network of these arrays; defaults are those of :meth:`from_edges`."""
        tails, heads = _numbers(sources, "source"), _numbers(targets, "target")
        if not len(tails) or len(tails) != len(heads):
            raise GraphError(
                f"{len(tails)} sources and {len(heads)} targets; give one of each per connection"
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
        """Return the multi-layer perceptron ``x -> f(A x + b)`` of these matrices.

        Each is ``(outputs, inputs)``: any scipy sparse format (stored zeros are connections) or a
        dense array (zeros are not). Connections are ordered as in Theorem 1: by layer, target,
        source. Neurons are numbered layer by layer.
        """
        widths, tails, heads, factors = _stack(layers)
        first = np.cumsum([0, *widths])
        offsets = np.zeros(first[-1])
        if biases is not None:
            if len(biases) != len(layers):
                raise GraphError(f"{len(layers)} layers and {len(biases)} bias vectors")
            for number, vector in enumerate(biases):
                values = np.asarray(vector, dtype=np.float64)
                if values.shape != (widths[number + 1],):
                    raise GraphError(
                        f"biases of layer {number} have shape {values.shape}, "
                        f"its width is {widths[number + 1]}"
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
        """The length of the longest path to each neuron; 0 for inputs and constants."""
        return levels(self.neurons, self.sources, self.targets)

    @property
    def given(self) -> int:
        """The number of neurons that are not computed: I of the paper, with constants."""
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
        """Return the outputs in double precision, neuron by neuron: the specification.

        ``inputs``: (batch, inputs) or (inputs,); the result has the same form.
        """
        given = np.asarray(inputs, dtype=np.float64)
        rows = np.atleast_2d(given)
        result = self.values(rows)[self.outputs].T
        return result[0] if given.ndim == 1 else result

    def values(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the value of every neuron, (neurons, batch), for inputs (batch, inputs)."""
        if rows.ndim != 2 or rows.shape[1] != len(self.inputs):
            raise GraphError(f"inputs have shape {rows.shape}, expected {len(self.inputs)} columns")
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
        raise GraphError(f"{kind}s must be a list of neuron numbers")
    if array.size and not 0 <= array.min() <= array.max() < LARGEST:
        raise GraphError(f"{kind} {array[(array < 0) | (array >= LARGEST)][0]}: no neuron number")
    return array.astype(np.int32)


def _stack(layers: Sequence[Any]) -> tuple[list[int], Ints, Ints, NDArray[Any]]:
    if not layers:
        raise GraphError("a network without layers: nothing to compute")
    widths: list[int] = []
    tails, heads, factors = [], [], []
    begin = 0
    for number, layer in enumerate(layers):
        matrix = layer if hasattr(layer, "tocoo") else np.asarray(layer, dtype=np.float64)
        if len(matrix.shape) != 2:
            raise GraphError(f"layer {number} has shape {matrix.shape}: a matrix is expected")
        rows, columns = matrix.shape
        if widths and widths[-1] != columns:
            raise GraphError(
                f"layer {number} takes {columns} values, the one before has {widths[-1]}"
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
            f"{len(net.sources)} sources, {len(net.targets)} targets and {len(net.weights)} "
            "weights: one each a connection"
        )
    if not len(net.weights):
        raise GraphError("a network without connections: nothing to compute")
    for name in ("sources", "targets", "inputs", "outputs"):
        array = getattr(net, name)
        if array.size and not 0 <= array.min() <= array.max() < count:
            wrong = array[(array < 0) | (array >= count)][0]
            raise GraphError(f"{name} name neuron {wrong}: there are {count}")
    for name in ("inputs", "outputs"):
        if len(np.unique(getattr(net, name))) != len(getattr(net, name)):
            raise GraphError(f"{name} name a neuron twice")
    bad = np.flatnonzero(~np.isfinite(net.weights))
    if len(bad):
        e = bad[0]
        raise GraphError(
            f"connection {e} ({net.sources[e]} -> {net.targets[e]}) has weight "
            f"{net.weights[e]}: weights must be finite"
        )
    bad = np.flatnonzero(~np.isfinite(net.biases))
    if len(bad):
        raise GraphError(f"neuron {bad[0]} has bias {net.biases[bad[0]]}: biases must be finite")
    keys = net.sources.astype(np.int64) * count + net.targets
    ordered = np.sort(keys)
    twice = np.flatnonzero(ordered[1:] == ordered[:-1])
    if len(twice):
        source, target = divmod(int(ordered[twice[0]]), count)
        raise GraphError(f"connection {source} -> {target} is there twice: add the weights up")


def _check_graph(net: FFNN) -> None:
    alone = np.flatnonzero((net.fan_in == 0) & (net.fan_out == 0))
    if len(alone):
        raise GraphError(f"neuron {alone[0]} is isolated: it has no connections")
    fed = net.inputs[net.fan_in[net.inputs] > 0]
    if len(fed):
        raise GraphError(f"input neuron {fed[0]} has incoming connections")
    if len(net.levels) and net.levels.min() < 0:
        cycle = a_cycle(net.neurons, net.sources, net.targets)
        raise CycleError("connections form a cycle: " + " -> ".join(map(str, [*cycle, cycle[0]])))
    vain = np.flatnonzero((net.fan_out == 0) & ~net.is_output)
    if len(vain):
        raise GraphError(
            f"neuron {vain[0]} is unused: it is not an output and has no outgoing connection"
        )
    if net.connected:
        part = parts(net.neurons, net.sources, net.targets)
        unreached = np.flatnonzero(part != part[0])
        if len(unreached):
            raise GraphError(
                "the network is not connected: no undirected path joins neurons 0 and "
                f"{unreached[0]}"
            )
