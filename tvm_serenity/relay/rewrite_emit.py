"""``rewrite.Net`` -> Relay: operators again, for ``relay.build`` to fuse.

What no rule touched is written as it was read. A partial convolution is the source's with weights
sliced here, at compile time; what it adds to is an ``add`` behind it, which fusion makes part of
its kernel; bias, requantisation and activation come with the last one.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tvm
from tvm import relay

from tvm_serenity.relay.rewrite_read import Reading, Source
from tvm_serenity.rewrite.net import Kind, Net, Node, Range

_VECTORS = ("nn.bias_add", "qnn.requantize", "qnn.quantize", "qnn.dequantize", "qnn.conv2d")
"""Operators whose constants of one axis are one number a channel."""

Change = Callable[[Any, Any], Any]
"""Of a step and one of its constants: the constant to write."""


def emit(reading: Reading, net: Net) -> Any:
    """Return the function ``main`` that computes ``net``."""
    writer = _Writer(reading)
    for node in net.nodes:
        writer.node(node)
    old = reading.region.function
    body = writer.again(reading.region.result)
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
        """Write one op."""
        if node.kind is Kind.CONCAT and node.source < 0:
            parts = [self.held[p.value] for p in node.operands[0].pieces]
            self.held[node.output] = relay.concatenate(parts, axis=node.axis or 0)
            return
        source = self.reading.sources[node.source]
        if source.call is not None and node == self.reading.net.find(node.name):
            self.unchanged(node, source)
        elif node.kind is Kind.CONV:
            self.held[node.output] = self.convolution(node, source)
        else:
            values = [self.held[v] for o in node.operands for v in o.values]
            self.held[node.output] = self.replay(source, values, node)

    def unchanged(self, node: Node, source: Source) -> None:
        """The op as it was read, inlined where it is a kernel."""
        arguments = [self.again(a) for a in source.call.args]
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

    def again(self, expr: relay.Expr) -> Any:
        """An expression of the old function in the new one."""
        expr = self.reading.region.bound.get(expr, expr)
        if isinstance(expr, relay.Call):
            return self.whole[expr] if expr in self.whole else self.held[self.made[expr][0]]
        if isinstance(expr, relay.Tuple):
            return relay.Tuple([self.again(f) for f in expr.fields])
        if isinstance(expr, relay.TupleGetItem):
            return relay.TupleGetItem(self.again(expr.tuple_value), expr.index)
        return expr

    def replay(self, source: Source, values: Sequence[Any], node: Node) -> Any:
        """All steps of a source on other tensors, constants cut to the channels made."""
        known = dict(zip(source.params, values, strict=True))
        made = None
        for step in source.steps:
            made = known[step] = _step(source, step, known, _cut(node))
        return made

    def convolution(self, node: Node, source: Source) -> Any:
        """A part of a convolution, what it adds to, and what follows the sum."""
        head = source.steps[0]
        y = _conv_like(source, head, self.held[node.operands[0].pieces[0].value], node)
        for value in (*node.addends, *(() if node.base is None else (node.base,))):
            y = relay.add(self.held[value], y)
        for index in node.biases:
            its = self.reading.sources[index]
            for before, step in zip(its.steps, its.steps[1 : 1 + its.biases], strict=False):
                y = _step(its, step, {before: y}, _cut(node))
        if node.tail is not None:
            its = self.reading.sources[node.tail]
            steps = its.tail
            if its.names[0] not in ("nn.conv2d", "qnn.conv2d"):
                steps = its.steps[1:]  # a merged add
            first = len(its.steps) - len(steps)
            for before, step in zip(its.steps[first - 1 :], steps, strict=False):
                y = _step(its, step, {before: y}, _cut(node))
        return y


def _step(source: Source, step: relay.Call, known: dict[Any, Any], change: Change) -> Any:
    """The call of a step again, with other tensors and constants."""

    def argument(expr: relay.Expr) -> Any:
        if expr in known:
            return known[expr]
        if isinstance(expr, relay.Tuple):
            return relay.Tuple([argument(f) for f in expr.fields])
        return change(step, source.constant(expr))

    return relay.Call(step.op, [argument(a) for a in step.args], step.attrs, step.type_args)


def _cut(node: Node) -> Change:
    """Constants cut to the output channels that a node makes."""

    def change(step: relay.Call, constant: relay.Constant) -> Any:
        if node.makes is None or node.axis is None:
            return constant
        array = constant.data.numpy()
        axis = node.axis - (len(step.checked_type.shape) - array.ndim)
        if step.op.name in _VECTORS and array.ndim == 1:
            axis = 0
        if axis < 0 or array.ndim == 0 or array.shape[axis] == 1:
            return constant
        return _const(np.take(array, range(*node.makes), axis=axis))

    return change


def _conv_like(source: Source, head: relay.Call, x: relay.Expr, node: Node) -> Any:
    assert node.conv is not None
    weight = source.constant(head.args[1]).data.numpy()
    layout, old = str(head.attrs.kernel_layout), head.attrs
    depthwise = node.conv.groups > 1
    spans: list[tuple[str, Range | None]] = [("O" if depthwise else "I", node.reads)]
    for letter, span in spans:
        if span is not None:
            weight = np.take(weight, range(*span), axis=layout.index(letter))
    changed: dict[str, Any] = {}
    if depthwise and node.reads is not None:
        changed["groups"] = node.reads[1] - node.reads[0]
    if node.makes is not None:
        changed["channels"] = node.makes[1] - node.makes[0]
    attrs = tvm.ir.make_node(
        "relay.attrs.Conv2DAttrs", **{**{str(k): old[k] for k in list(old.keys())}, **changed}
    )
    change = _cut(node)
    rest = [change(head, source.constant(a)) for a in head.args[2:]]
    return relay.Call(head.op, [x, _const(weight), *rest], attrs)


def _const(array: np.ndarray[Any, Any]) -> Any:
    return relay.const(np.ascontiguousarray(array), str(array.dtype))
