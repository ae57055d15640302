"""What writes the ops of a net in a representation of TVM's: Relax has one, and Relay.

Rules say what an op computes in these words; no rule imports TVM.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tvm_serenity.rewrite.net import Node, Range

Expr = Any
"""An expression of the representation."""
Array = npt.NDArray[Any]


class Builder(Protocol):
    """Writes what one op computes; ``source`` numbers an op of the network that was read.

    Where a node is given, weights and constants are those of the channels that it reads and makes
    (:func:`of_weights`, :func:`of_channels`).
    """

    def value(self, value: int) -> Expr:
        """Return a value of the net, which the op reads."""

    def part(self, x: Expr, axis: int, start: int, stop: int) -> Expr:
        """Return ``x`` from ``start`` to before ``stop`` along an axis."""

    def joined(self, parts: Sequence[Expr], axis: int) -> Expr:
        """Return tensors put together along an axis."""

    def sum(self, x: Expr, y: Expr) -> Expr:
        """Return ``x + y``."""

    def again(self, source: int, operands: Sequence[Expr], node: Node | None = None) -> Expr:
        """Return all that a source op computes, of other operands."""

    def convolution(self, node: Node, x: Expr) -> Expr:
        """Return the convolution of a node's source alone, of ``x``."""

    def bias(self, source: int, node: Node, y: Expr) -> Expr:
        """Return ``y`` with the bias of a source convolution added."""

    def tail(self, source: int, node: Node, y: Expr) -> Expr:
        """Return what a source op makes of its sum, bias included, if that is ``y``."""


def of_weights(weights: Array, layout: str, node: Node) -> Array:
    """Return the weights of the channels that a convolution reads and makes.

    ``layout`` has the letters O and I at the axes of outputs and inputs. Of a convolution that
    filters every channel by itself, O may count the channels read: a multiplier stands at I then.
    """
    assert node.conv is not None
    outputs, inputs = layout.index("O"), layout.index("I")
    made = node.makes
    if made is not None and weights.shape[outputs] != node.conv.out_channels:
        made = node.reads
    weights = taken(weights, outputs, made)
    return taken(weights, inputs, node.reads if node.conv.groups == 1 else None)


def of_channels(constant: Array, node: Node, rank: int, per_channel: bool = False) -> Array:
    """Return a constant's part for the channels that a node makes, of an operator on ``rank`` axes.

    It is the constant itself where that is the same for all of them. ``per_channel``: a constant of
    one axis has a number for each channel, wherever their axis is.
    """
    if node.axis is None:
        return constant
    axis = 0 if per_channel and constant.ndim == 1 else node.axis - (rank - constant.ndim)
    if axis < 0 or constant.ndim == 0 or constant.shape[axis] == 1:
        return constant
    return taken(constant, axis, node.makes)


def taken(array: Array, axis: int, span: Range | None) -> Array:
    """Return an array's part along an axis; the array itself where no span is given."""
    return array if span is None else np.ascontiguousarray(array.take(range(*span), axis))


def groups(node: Node) -> int:
    """Return how many groups a part of a convolution has."""
    assert node.conv is not None
    if node.conv.groups == 1 or node.makes is None:
        return node.conv.groups
    return node.conv.groups * (node.makes[1] - node.makes[0]) // node.conv.out_channels
