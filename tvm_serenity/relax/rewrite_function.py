"""One op of a net as a Relax function of high-level operators, weights sliced to its channels."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.relax.rewrite_kinds import shape_of
from tvm_serenity.relax.rewrite_read import Reading, Source
from tvm_serenity.rewrite.net import Kind, Net, Node, Operand, Range


class OpFunction:
    """One op as a Relax function: ``keys`` are its arguments, ``params`` its parameters."""

    def __init__(self, reading: Reading, net: Net, node: Node) -> None:
        self.reading, self.net, self.node = reading, net, node
        self.builder = relax.BlockBuilder()
        self.keys: list[Any] = []
        self.params: list[Any] = []
        self.values: dict[int, Any] = {}
        self.steps: list[Any] = []

    def build(self) -> Any:
        """The function, with the attribute that makes TVM fuse it into one kernel."""
        for value in dict.fromkeys((*self._read(),)):
            self.values[value] = self._parameter(value, _type(self.net, value))
        prepared = self._constants()
        with self.builder.function("op", self.params, attrs={"Primitive": True}):
            with self.builder.dataflow():
                made = self._compute(prepared)
                made = self.builder.emit_output(made)
            self.builder.emit_func_output(made)
        return self.builder.get()["op"]

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
        """A constant as a parameter of its own; numbers stay in the function."""
        return self._parameter(constant, constant.ty) if shape_of(constant) else constant

    def _constants(self) -> dict[Any, Any]:
        """A parameter for every constant the op uses, sliced to its channels."""
        node = self.node
        prepared: dict[Any, Any] = {}
        if node.kind is Kind.CONV:
            source = self._source(node.source)
            prepared["weight"] = self._constant(_sliced_weight(source.head, node))
            for s in node.biases:
                for i, binding in enumerate(self._biases(s)):
                    prepared["bias", s, i] = self._sliced(_constants_of(binding.value)[0])
            for i, binding in enumerate(self._tail()):
                for j, constant in enumerate(_constants_of(binding.value)):
                    prepared["tail", i, j] = self._sliced(constant)
        elif node.kind is not Kind.CONCAT:
            for i, binding in enumerate(self._source(node.source).bindings):
                for j, constant in enumerate(_constants_of(binding.value)):
                    prepared["body", i, j] = self._sliced(constant)
        for s in dict.fromkeys(s for o in node.operands for p in o.pieces for s in p.through):
            for i, binding in enumerate(self._source(s).bindings):
                for j, constant in enumerate(_constants_of(binding.value)):
                    prepared[f"through {s}", i, j] = self._constant(constant)
        return prepared

    def _sliced(self, constant: tvm.ir.GenericConst) -> Any:
        """A constant's part for the channels made: itself where it is the same for all of them."""
        node, shape = self.node, shape_of(constant)
        if node.makes is not None and node.axis is not None:
            rank = len(self.net.values[node.output].shape or ())
            axis = node.axis - (rank - len(shape))
            if axis >= 0 and shape[axis] != 1:
                constant = _taken(constant, [(axis, node.makes)])
        return self._constant(constant)

    def _source(self, index: int) -> Source:
        return self.reading.sources[index]

    def _biases(self, source: int) -> Sequence[Any]:
        found = self._source(source)
        return tuple(found.bindings[1 : 1 + found.biases])

    def _tail(self) -> Sequence[Any]:
        """What follows the sum: of a convolution after its bias, of a merged add after it."""
        if self.node.tail is None:
            return ()
        found = self._source(self.node.tail)
        return tuple(found.bindings[1 + found.biases :])

    def _compute(self, prepared: dict[Any, Any]) -> Any:
        node = self.node
        operands = [self._operand(o, prepared) for o in node.operands]
        if node.kind is Kind.CONCAT:
            return operands[0]
        if node.kind is not Kind.CONV:
            return self._replay(operands, prepared)
        call = self._source(node.source).head
        y = self._emit(_conv_like(call, operands[0], prepared["weight"], node))
        for value in (*node.addends, *((node.base,) if node.into is None else ())):
            if value is not None:
                y = self._emit(relax.op.add(self.values[value], y))
        for s in node.biases:
            for i in range(len(self._biases(s))):
                y = self._emit(relax.op.add(y, prepared["bias", s, i]))
        for i, binding in enumerate(self._tail()):
            y = self._step(binding, {_only_var(binding.value): y}, prepared, ("tail", i))
        return y

    def _operand(self, operand: Operand, prepared: dict[Any, Any]) -> Any:
        pieces = []
        for piece in operand.pieces:
            x = self.values[piece.value]
            if piece.part is not None:
                axis, start, stop = piece.part
                x = self._emit(relax.op.strided_slice(x, [axis], [start], [stop]))
            for s in piece.through:
                for i, binding in enumerate(self._source(s).bindings):
                    known = {_only_var(binding.value): x}
                    x = self._step(binding, known, prepared, (f"through {s}", i))
            pieces.append(x)
        if len(pieces) == 1:
            return pieces[0]
        return self._emit(relax.op.concat(pieces, axis=operand.axis))

    def _replay(self, operands: Sequence[Any], prepared: dict[Any, Any]) -> Any:
        source = self._source(self.node.source)
        known = dict(zip(source.operands, operands, strict=True))
        y: Any = None
        for i, binding in enumerate(source.bindings):
            y = known[binding.var] = self._step(binding, known, prepared, ("body", i))
        return y

    def _step(
        self,
        binding: relax.VarBinding,
        known: dict[Any, Any],
        prepared: dict[Any, Any],
        key: tuple[str, int],
    ) -> Any:
        """The call of a binding again, with other arguments."""
        count = itertools.count()

        def constant(expr: relax.Expr) -> Any:
            return prepared.get((*key, next(count)), expr)

        return self._emit(called_again(binding.value, known, constant))

    def _emit(self, call: relax.Call) -> Any:
        return self.builder.emit(call)


def called_again(call: relax.Call, known: Mapping[Any, Any], constant: Callable[[Any], Any]) -> Any:
    """Return a call with its variables replaced by what is ``known`` and its constants mapped."""

    def argument(expr: relax.Expr) -> Any:
        if isinstance(expr, relax.Var):
            return known[expr]
        if compat.is_constant(expr):
            return constant(expr)
        if isinstance(expr, relax.Tuple):
            return relax.Tuple([argument(f) for f in expr.fields])
        return expr

    return compat.call_like(call, [argument(a) for a in call.args])


def _conv_like(call: relax.Call, x: relax.Expr, weight: relax.Var, node: Node) -> Any:
    attrs = call.attrs
    assert node.conv is not None
    groups = node.conv.groups
    if node.makes is not None and groups > 1:
        groups = groups * (node.makes[1] - node.makes[0]) // node.conv.out_channels
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


def _sliced_weight(call: relax.Call, node: Node) -> Any:
    """The weights of the channels that an op reads and makes."""
    layout = str(call.attrs.kernel_layout)
    assert node.conv is not None
    parts = []
    if node.makes is not None:
        parts.append((layout.index("O"), node.makes))
    if node.reads is not None and node.conv.groups == 1:
        parts.append((layout.index("I"), node.reads))
    return _taken(call.args[1], parts)


def _taken(constant: tvm.ir.GenericConst, parts: Sequence[tuple[int, Range]]) -> Any:
    """A constant's part between two indices along some axes; itself where there are none."""
    if not parts:
        return constant
    array = constant.value.numpy()
    for axis, span in parts:
        array = np.take(array, range(*span), axis=axis)
    return relax.const(np.ascontiguousarray(array), str(array.dtype))


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
