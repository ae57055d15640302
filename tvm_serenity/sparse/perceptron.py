"""Reads dense multi-layer perceptrons from ONNX files and PyTorch modules, for pruning."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tvm_serenity.errors import InputError, MissingPartError, UnsupportedError
from tvm_serenity.sparse.network import Activation
from tvm_serenity.sparse.prune import Pruned, prune

if TYPE_CHECKING:
    import onnx
    import torch

NEUTRAL = {"Identity", "Flatten", "Dropout"}
"""Operators that leave a tensor (batch, features) unchanged."""


@dataclass
class Perceptron:
    """A multi-layer perceptron with layers ``x -> f(A x + b)``.

    ``layers``: the matrices A of shape (outputs, inputs). ``rectified``: whether f is ReLU.
    """

    layers: list[NDArray[np.float32]]
    biases: list[NDArray[np.float32]]
    rectified: list[bool]

    def pruned(self, density: float) -> Pruned:
        """Return the network of the largest weights (see :func:`prune`).

        Raises :class:`UnsupportedError` if there are no layers, or if only some hidden layers have
        a ReLU.
        """
        if not self.layers:
            raise UnsupportedError(
                "the model is not a multi-layer perceptron: it has no matrix product"
            )
        hidden = set(self.rectified[:-1]) or {True}
        if len(hidden) > 1:
            raise UnsupportedError(
                "only some hidden layers have a ReLU; use ReLU after all hidden layers or none"
            )
        kinds = {True: Activation.RELU, False: Activation.IDENTITY}
        return prune(
            self.layers, self.biases, density, kinds[hidden.pop()], kinds[self.rectified[-1]]
        )

    def add(self, matrix: NDArray[Any], where: str) -> None:
        """Append a layer without a bias; ``where`` names the operator in messages."""
        if matrix.ndim != 2:
            raise UnsupportedError(
                f"{where}: the weight has shape {matrix.shape}, but a matrix is required"
            )
        self.layers.append(np.asarray(matrix, dtype=np.float32))
        self.biases.append(np.zeros(len(matrix), dtype=np.float32))
        self.rectified.append(False)

    def bias(self, values: NDArray[Any], where: str) -> None:
        """Add ``values`` to the bias of the last layer."""
        if not self.layers or self.rectified[-1]:
            raise UnsupportedError(
                f"{where}: the addition does not follow a matrix product, so it is not a bias"
            )
        try:
            added = np.broadcast_to(np.asarray(values, np.float32).ravel(), self.biases[-1].shape)
        except ValueError:
            raise UnsupportedError(
                f"{where}: the bias has shape {np.shape(values)}, but its layer has "
                f"{len(self.layers[-1])} outputs"
            ) from None
        self.biases[-1] = self.biases[-1] + added


def from_onnx(path: str | os.PathLike[str]) -> Perceptron:
    """Return the perceptron of an ``.onnx`` file, a chain of Gemm, MatMul, Add and Relu.

    Raises :class:`UnsupportedError`, which names the first operator of another kind.
    """
    try:
        import onnx
        from onnx import numpy_helper
    except ImportError as error:
        raise MissingPartError("--onnx needs onnx: pip install onnx") from error
    try:
        model = onnx.load(Path(path))
    except OSError as error:
        raise InputError(f"{path}: the file cannot be read: {error.strerror}") from error
    except Exception as error:  # An exception class of protobuf.
        raise InputError(f"{path}: the file is not an ONNX model") from error
    graph = model.graph
    constants = {value.name: numpy_helper.to_array(value) for value in graph.initializer}
    given = [value.name for value in graph.input if value.name not in constants]
    if len(given) != 1 or len(graph.output) != 1:
        raise UnsupportedError(
            f"{path}: the model has {len(given)} inputs and {len(graph.output)} outputs; a "
            "perceptron has one of each"
        )
    read, at = Perceptron([], [], []), given[0]
    for node in graph.node:
        where = f"{path}: {node.op_type} {node.name or node.output[0]}"
        if node.op_type == "Constant":
            for attribute in node.attribute:
                if attribute.name == "value":
                    constants[node.output[0]] = numpy_helper.to_array(attribute.t)
            continue
        if at not in node.input:
            raise UnsupportedError(
                f"{where}: the operator does not read the previous operator's output {at!r}; a "
                "perceptron is a chain of operators"
            )
        others = [name for name in node.input if name not in (at, "")]
        _read_node(read, node, [constants.get(name) for name in others], where, at)
        at = node.output[0]
    if at != graph.output[0].name:
        raise UnsupportedError(
            f"{path}: the last operator computes {at!r}, not the model's output "
            f"{graph.output[0].name!r}; a perceptron is a chain of operators"
        )
    return read


def _read_node(
    read: Perceptron, node: "onnx.NodeProto", others: list[NDArray[Any] | None], where: str, at: str
) -> None:
    kind = node.op_type
    if kind in NEUTRAL:
        return
    if any(value is None for value in others):
        raise UnsupportedError(f"{where}: the weight or bias is not a constant")
    given = [value for value in others if value is not None]
    if kind == "Relu" and read.layers:
        read.rectified[-1] = True
    elif kind == "MatMul" and node.input[0] == at:
        read.add(given[0].T, where)
    elif kind == "Add":
        read.bias(given[0], where)
    elif kind == "Gemm" and node.input[0] == at:
        options = {a.name: a for a in node.attribute}
        scales = [options[n].f for n in ("alpha", "beta") if n in options]
        if any(scale != 1 for scale in scales) or ("transA" in options and options["transA"].i):
            raise UnsupportedError(
                f"{where}: alpha, beta and transA must have their default values 1, 1 and 0"
            )
        turned = "transB" in options and options["transB"].i
        read.add(given[0] if turned else given[0].T, where)
        if len(given) > 1:
            read.bias(given[1], where)
    else:
        raise UnsupportedError(
            f"{where}: the operator is not supported; a perceptron has Gemm or MatMul, Add and Relu"
        )


def from_torch(module: "torch.nn.Module") -> Perceptron:
    """Return the perceptron of a PyTorch module that runs its submodules in their stored order.

    The submodules may be ``Linear``, ``ReLU``, ``Dropout``, ``Flatten`` and ``Identity``. Raises
    :class:`UnsupportedError`, which names the first submodule of another kind.
    """
    read = Perceptron([], [], [])
    leaves = [(n, m) for n, m in module.named_modules() if not list(m.children())]
    for name, leaf in leaves:
        kind = type(leaf).__name__
        if kind == "Linear":
            read.add(leaf.weight.detach().cpu().numpy(), name)
            if leaf.bias is not None:
                read.bias(leaf.bias.detach().cpu().numpy(), name)
        elif kind == "ReLU" and read.layers:
            read.rectified[-1] = True
        elif kind not in NEUTRAL:
            raise UnsupportedError(
                f"{name}: the module {kind} is not supported; a perceptron has Linear and ReLU"
            )
    return read
