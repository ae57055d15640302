"""Conversion of ``rewrite.Net`` to Relay operators, which ``relay.build`` fuses.

Operators that no rule touched are written as they were read. A partial convolution is its source's,
with weights sliced at compile time. Partial sums are added by an ``add`` that fusion merges into
the kernel. Bias, requantisation and activation follow the last partial sum.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tvm
from tvm import relay

from tvm_serenity.relay.rewrite_read import Reading, Source, is_conv
from tvm_serenity.rewrite.builder import Array, groups, of_channels, of_weights
from tvm_serenity.rewrite.emit import emit as emit_op
from tvm_serenity.rewrite.net import Net, Node
from tvm_serenity.rewrite.rule import Ability

_VECTORS = ("nn.bias_add", "qnn.requantize", "qnn.quantize", "qnn.dequantize", "qnn.conv2d")
"""Operators whose one-dimensional constants have one number per channel."""

ABILITIES: frozenset[Ability] = frozenset()
"""The abilities of Relay kernels: none, they read unsplit tensors and allocate results."""


def emit(reading: Reading, net: Net) -> Any:
    """Return the function ``main`` that computes ``net``."""
    writer = _Writer(reading)
    for node in net.nodes:
        writer.node(node)
    old = reading.region.function
    body = writer.rebound(reading.region.result)
    return relay.Function(old.params, body, None, old.type_params, old.attrs)


class _Writer:
    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        region = reading.region
        self.made = {
            call: op.outputs for call, op in zip(region.calls, region.graph.ops, strict=True)
        }
        self.inputs = dict(zip(region.graph.inputs, region.function.params, strict=True))
        self.held: dict[int, Any] = dict(self.inputs)
        self.whole: dict[Any, Any] = {}

    def node(self, node: Node) -> None:
        """Write one operator."""
        source = None if node.source < 0 else self.reading.sources[node.source]
        read = source is not None and source.call is not None
        if source is not None and read and node == self.reading.net.find(node.name):
            self.unchanged(node, source)
        else:
            self.held[node.output] = emit_op(self, node)

    def unchanged(self, node: Node, source: Source) -> None:
        """Return the operator as it was read, inlined if it is a kernel."""
        arguments = [self.rebound(a) for a in source.call.args]
        if source.body is None and not isinstance(source.call.op, relay.Function):
            made = relay.Call(source.call.op, arguments, source.call.attrs, source.call.type_args)
        else:
            given = dict(zip(source.call.op.params, arguments, strict=True))
            made = relay.bind(source.call.op.body, given)
        self.whole[source.call] = made
        if isinstance(source.call.checked_type, relay.TupleType):
            for i, value in enumerate(node.outputs):
                self.held[value] = relay.TupleGetItem(made, i)
        else:
            self.held[node.output] = made

    def rebound(self, expr: relay.Expr) -> Any:
        """Return an expression of the old function in terms of the new one."""
        expr = self.reading.region.bound.get(expr, expr)
        if isinstance(expr, relay.Call):
            return self.whole[expr] if expr in self.whole else self.held[self.made[expr][0]]
        if isinstance(expr, relay.Tuple):
            return relay.Tuple([self.rebound(f) for f in expr.fields])
        if isinstance(expr, relay.TupleGetItem):
            return relay.TupleGetItem(self.rebound(expr.tuple_value), expr.index)
        return expr

    def value(self, value: int) -> Any:
        """Return the expression of a value."""
        return self.held[value]

    def part(self, x: Any, axis: int, start: int, stop: int) -> Any:
        """Return a slice of a tensor."""
        return relay.strided_slice(x, [start], [stop], axes=[axis])

    def joined(self, parts: Sequence[Any], axis: int) -> Any:
        """Return the concatenation of tensors."""
        return relay.concatenate(list(parts), axis=axis)

    def sum(self, x: Any, y: Any) -> Any:
        """Return a sum."""
        return relay.add(x, y)

    def again(self, source: int, operands: Sequence[Any], node: Node | None = None) -> Any:
        """Return all steps of a source, applied to other tensors."""
        its = self.reading.sources[source]
        known = dict(zip(its.params, operands, strict=True))
        made = None
        for step in its.steps:
            made = known[step] = _step(its, step, known, node)
        return made

    def convolution(self, node: Node, x: Any) -> Any:
        """Return the convolution without its following steps."""
        source = self.reading.sources[node.source]
        return _conv_like(source, source.steps[0], x, node)

    def bias(self, source: int, node: Node, y: Any) -> Any:
        """Return a sum plus the bias of a convolution."""
        its = self.reading.sources[source]
        return _steps(its, range(1, 1 + its.biases), node, y)

    def tail(self, source: int, node: Node, y: Any) -> Any:
        """Return the steps after the sum: after a convolution's bias, after a merged add."""
        its = self.reading.sources[source]
        first = len(its.steps) - len(its.tail) if is_conv(its.names[0]) else 1
        return _steps(its, range(first, len(its.steps)), node, y)


def _steps(source: Source, numbers: range, node: Node, y: Any) -> Any:
    """Return consecutive steps of a source, the first applied to ``y``."""
    for number in numbers:
        y = _step(source, source.steps[number], {source.steps[number - 1]: y}, node)
    return y


def _step(source: Source, step: relay.Call, known: Mapping[Any, Any], node: Node | None) -> Any:
    """Return the call of a step with other tensors, and constants sliced to a node's channels."""

    def argument(expr: relay.Expr) -> Any:
        if expr in known:
            return known[expr]
        if isinstance(expr, relay.Tuple):
            return relay.Tuple([argument(f) for f in expr.fields])
        return _cut(step, source.constant(expr), node)

    return relay.Call(step.op, [argument(a) for a in step.args], step.attrs, step.type_args)


def _cut(step: relay.Call, constant: relay.Constant, node: Node | None) -> Any:
    """Return a constant sliced to the channels of a node, or unsplit if it has none."""
    if node is None:
        return constant
    array = constant.data.numpy()
    rank = len(step.checked_type.shape)
    made = of_channels(array, node, rank, per_channel=step.op.name in _VECTORS)
    return constant if made is array else _const(made)


def _conv_like(source: Source, head: relay.Call, x: relay.Expr, node: Node) -> Any:
    assert node.conv is not None
    weights = source.constant(head.args[1]).data.numpy()
    old = head.attrs
    changed: dict[str, Any] = {"groups": groups(node)}
    if node.makes is not None:
        changed["channels"] = node.makes[1] - node.makes[0]
    attrs = tvm.ir.make_node(
        "relay.attrs.Conv2DAttrs", **{**{str(k): old[k] for k in list(old.keys())}, **changed}
    )
    weight = _const(of_weights(weights, str(old.kernel_layout), node))
    rest = [_cut(head, source.constant(a), node) for a in head.args[2:]]
    return relay.Call(head.op, [x, weight, *rest], attrs)


def _const(array: Array) -> Any:
    return relay.const(np.ascontiguousarray(array), str(array.dtype))
