"""Emission of one operator of a net as a Relax function, with weights sliced to its channels."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tvm
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.relax.rewrite_kinds import shape_of
from tvm_serenity.relax.rewrite_read import Reading, Source
from tvm_serenity.rewrite.builder import Array, groups, of_channels, of_weights
from tvm_serenity.rewrite.emit import emit
from tvm_serenity.rewrite.net import Net, Node


class OpFunction:
    """An operator as a Relax function: ``keys``: its arguments, ``params``: its parameters.

    It implements the builder interface of ``rewrite.builder``.
    """

    def __init__(self, reading: Reading, net: Net, node: Node) -> None:
        self.reading, self.net, self.node = reading, net, node
        self.builder = relax.BlockBuilder()
        self.keys: list[Any] = []
        self.params: list[Any] = []
        self.values: dict[int, Any] = {}

    def build(self) -> Any:
        """Return the function, with the attribute that makes TVM fuse it into one kernel."""
        for value in dict.fromkeys(self._read()):
            self.values[value] = self._parameter(value, _type(self.net, value))
        with self.builder.function("op", attrs={"Primitive": True}):
            with self.builder.dataflow():
                made = self.builder.emit_output(emit(self, self.node))
            self.builder.emit_func_output(made, self.params)
        return self.builder.get()["op"]

    def value(self, value: int) -> Any:
        """Return the parameter for a value of the net."""
        return self.values[value]

    def part(self, x: Any, axis: int, start: int, stop: int) -> Any:
        """Return a slice of a tensor."""
        return self._emit(relax.op.strided_slice(x, [axis], [start], [stop]))

    def joined(self, parts: Sequence[Any], axis: int) -> Any:
        """Return the concatenation of tensors."""
        return self._emit(relax.op.concat(list(parts), axis=axis))

    def sum(self, x: Any, y: Any) -> Any:
        """Return a sum."""
        return self._emit(relax.op.add(x, y))

    def again(self, source: int, operands: Sequence[Any], node: Node | None = None) -> Any:
        """Return all bindings of a source, on other operands."""
        found = self._source(source)
        known: dict[Any, Any] = dict(zip(found.operands, operands, strict=True))
        y: Any = None
        for binding in found.bindings:
            y = known[binding.var] = self._step(binding, known, node)
        return y

    def convolution(self, node: Node, x: Any) -> Any:
        """Return the convolution without its following steps."""
        call = self._source(node.source).head
        layout = str(call.attrs.kernel_layout)
        weights = _changed(call.args[1], lambda array: of_weights(array, layout, node))
        return self._emit(_conv_like(call, x, self._constant(weights), groups(node)))

    def bias(self, source: int, node: Node, y: Any) -> Any:
        """Return a sum plus the bias of a convolution."""
        found = self._source(source)
        for binding in found.bindings[1 : 1 + found.biases]:
            added = self._cut(_constants_of(binding.value)[0], node)
            y = self.sum(y, added)
        return y

    def tail(self, source: int, node: Node, y: Any) -> Any:
        """Return the steps after the sum: after a convolution's bias, after a merged add."""
        found = self._source(source)
        for binding in found.bindings[1 + found.biases :]:
            y = self._step(binding, {_only_var(binding.value): y}, node)
        return y

    def _read(self) -> list[int]:
        node = self.node
        read = [v for o in node.operands for v in o.values] + list(node.addends)
        if node.base is not None and node.into is None:
            read.append(node.base)
        return read

    def _parameter(self, key: tvm.ir.GenericConst | int, ty: relax.Type) -> Any:
        var = relax.Var(f"p{len(self.params)}", ty)
        self.keys.append(key)
        self.params.append(var)
        return var

    def _constant(self, constant: tvm.ir.GenericConst) -> Any:
        """Return a constant as a parameter of its own; scalars stay in the function."""
        return self._parameter(constant, constant.ty) if shape_of(constant) else constant

    def _cut(self, constant: tvm.ir.GenericConst, node: Node | None) -> Any:
        """Return a constant sliced to the channels of a node, or unsplit if it has none."""
        if node is not None and node.makes is not None:
            rank = len(self.net.values[node.output].shape or ())
            constant = _changed(constant, lambda array: of_channels(array, node, rank))
        return self._constant(constant)

    def _source(self, index: int) -> Source:
        return self.reading.sources[index]

    def _step(self, binding: relax.VarBinding, known: Mapping[Any, Any], node: Node | None) -> Any:
        """Return the call of a binding with other arguments."""
        return self._emit(called_again(binding.value, known, lambda c: self._cut(c, node)))

    def _emit(self, call: relax.Call) -> Any:
        return self.builder.emit(call)


def called_again(call: relax.Call, known: Mapping[Any, Any], constant: Callable[[Any], Any]) -> Any:
    """Return a call with ``known`` variables replaced and its constants mapped."""

    def argument(expr: relax.Expr) -> Any:
        if isinstance(expr, relax.Var):
            return known[expr]
        if compat.is_constant(expr):
            return constant(expr)
        if isinstance(expr, relax.Tuple):
            return relax.Tuple([argument(f) for f in expr.fields])
        return expr

    return compat.call_like(call, [argument(a) for a in call.args])


def _conv_like(call: relax.Call, x: relax.Expr, weight: relax.Var, groups: int) -> Any:
    attrs = call.attrs
    return relax.op.nn.conv2d(
        x,
        weight,
        strides=attrs.strides,
        padding=attrs.padding,
        dilation=attrs.dilation,
        groups=groups,
        data_layout=attrs.data_layout,
        kernel_layout=attrs.kernel_layout,
        out_layout=attrs.out_layout,
        out_dtype=attrs.out_dtype,
    )


def _changed(constant: tvm.ir.GenericConst, change: Callable[[Array], Array]) -> Any:
    """Return a constant with its array changed; itself if the array is the same."""
    array = constant.value.numpy()
    made = change(array)
    return constant if made is array else relax.const(made, str(array.dtype))


def _constants_of(call: relax.Call) -> list[Any]:
    found = []
    for a in call.args:
        if compat.is_constant(a):
            found.append(a)
        elif isinstance(a, relax.Tuple):
            found += [f for f in a.fields if compat.is_constant(f)]
    return found


def _only_var(call: relax.Call) -> Any:
    return next(a for a in call.args if isinstance(a, relax.Var) and compat.is_tensor(a.ty))


def _type(net: Net, value: int) -> Any:
    tensor = net.values[value]
    return relax.TensorType(tensor.shape, tensor.dtype)
