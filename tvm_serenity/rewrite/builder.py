"""The interface that emits the ops of a net in Relax or Relay.

Rules describe the computation of an op by these methods; no rule imports TVM.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tvm_serenity.rewrite.net import Node, Range

Expr = Any
"""An expression of Relax or Relay."""
Array = npt.NDArray[Any]


class Builder(Protocol):
    """Emits the computation of one op; ``source`` numbers an op of the original network.

    If a node is given, weights and constants are those of the channels that it reads and produces
    (:func:`of_weights`, :func:`of_channels`).
    """

    def value(self, value: int) -> Expr:
        """Return the expression of a value of the net."""

    def part(self, x: Expr, axis: int, start: int, stop: int) -> Expr:
        """Return ``x`` from ``start`` to before ``stop`` along an axis."""

    def joined(self, parts: Sequence[Expr], axis: int) -> Expr:
        """Return tensors concatenated along an axis."""

    def sum(self, x: Expr, y: Expr) -> Expr:
        """Return ``x + y``."""

    def again(self, source: int, operands: Sequence[Expr], node: Node | None = None) -> Expr:
        """Return the computation of a source op on other operands."""

    def convolution(self, node: Node, x: Expr) -> Expr:
        """Return the convolution of a node's source on ``x``, without bias and activation."""

    def bias(self, source: int, node: Node, y: Expr) -> Expr:
        """Return ``y`` with the bias of a source convolution added."""

    def tail(self, source: int, node: Node, y: Expr) -> Expr:
        """Return the result of a source op whose sum, bias included, is ``y``."""


def of_weights(weights: Array, layout: str, node: Node) -> Array:
    """Return the weights of the channels that a convolution reads and produces.

    ``layout`` has the letters O and I at the axes of outputs and inputs. In a depthwise
    convolution, O may count the input channels; I is the channel multiplier then.
    """
    assert node.conv is not None
    outputs, inputs = layout.index("O"), layout.index("I")
    made = node.makes
    if made is not None and weights.shape[outputs] != node.conv.out_channels:
        made = node.reads
    weights = taken(weights, outputs, made)
    return taken(weights, inputs, node.reads if node.conv.groups == 1 else None)


def of_channels(constant: Array, node: Node, rank: int, per_channel: bool = False) -> Array:
    """Return a constant's part for the channels that a node produces; its op has ``rank`` axes.

    It is the full constant if all channels share it. ``per_channel``: a constant of one axis has
    one number per channel, wherever the channel axis is.
    """
    if node.axis is None:
        return constant
    axis = 0 if per_channel and constant.ndim == 1 else node.axis - (rank - constant.ndim)
    if axis < 0 or constant.ndim == 0 or constant.shape[axis] == 1:
        return constant
    return taken(constant, axis, node.makes)


def taken(array: Array, axis: int, span: Range | None) -> Array:
    """Return an array's part along an axis; the full array without a span."""
    return array if span is None else np.ascontiguousarray(array.take(range(*span), axis))


def groups(node: Node) -> int:
    """Return the number of groups of a part of a convolution."""
    assert node.conv is not None
    if node.conv.groups == 1 or node.makes is None:
        return node.conv.groups
    return node.conv.groups * (node.makes[1] - node.makes[0]) // node.conv.out_channels
