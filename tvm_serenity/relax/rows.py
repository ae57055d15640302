"""The module whose ``main`` calls rows in order."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tvm
from tvm import relax, s_tir, tirx

from tvm_serenity import compat, tvm_targets
from tvm_serenity.errors import InputError, UnsupportedError
from tvm_serenity.kernels.build import OPAQUE
from tvm_serenity.kernels.lean import LEAN
from tvm_serenity.kernels.rows import RowParam
from tvm_serenity.relax.rows_read import LayerKernel, RowModule, read_rows
from tvm_serenity.rows.limits import Limits
from tvm_serenity.rows.network import Layer
from tvm_serenity.rows.split import SOURCE, RowCall, heights_of
from tvm_serenity.rows.stream import Streaming, stream


def by_rows(
    mod: tvm.IRModule, target: tvm.target.Target | str | None = None, limits: Limits | None = None
) -> tuple[Any, Streaming]:
    """Return ``mod`` in bands of one row, and the order and placement it was split for.

    1. A fresh module is lowered and fused, with images in channels-last layout.

    2. Each layer whose kernel computes its rows independently becomes a call per row; global
    pooling accumulates rows. Other layers are called unsplit.

    3. Calls are in the best order found within ``limits``; input rows are copied in when they are
    needed. Results are bit-identical.

    Raises :class:`UnsupportedError` if the module cannot be read, or nothing can be split.
    """
    target = tvm_targets.current() if target is None else tvm.target.Target(target)
    rows = read_rows(mod, "main", target)
    if not rows.network.splittable or len(rows.network.outputs) != 1:
        raise UnsupportedError(
            "no layer can be split into rows, or the network has several outputs"
        )
    heights = heights_of(rows.network, 1)
    try:
        found = stream(rows.network, heights, streamed=True, limits=limits)
    except InputError:
        found = stream(rows.network, heights, limits=limits)
    return Emitter(rows, found, mod["main"]).module(), found


@dataclass
class Emitter:
    """An emitter of the calls of a network by rows; ``function``: the network as it was read."""

    rows: RowModule
    found: Streaming
    function: relax.Function
    builder: relax.BlockBuilder = field(
        default_factory=lambda: relax.BlockBuilder(tvm.IRModule({}))
    )
    made: dict[tuple[int, int], relax.Expr] = field(default_factory=dict)
    whole: dict[int, relax.Expr] = field(default_factory=dict)
    pads: dict[tuple[str, float, int], relax.Expr] = field(default_factory=dict)
    kernels: dict[Any, Any] = field(default_factory=dict)

    def module(self) -> Any:
        """The module whose ``main`` calls rows in order."""
        network, banded = self.rows.network, self.found.banded
        params = [relax.Var(p.name, p.ty) for p in self.function.params]
        with self.builder.function("main", params):
            with self.builder.dataflow():
                for feature, param in zip(network.inputs, params, strict=True):
                    self.whole[feature] = self.in_shape(param, network.features[feature].shape)
                for op in self.found.schedule.order:
                    self.call(banded.calls[op])
                (made,) = network.outputs
                stored = self.in_shape(self.whole[made], self.rows.shape(made))
                result = self.builder.emit_output(stored)
            self.builder.emit_func_output(result)
        return relax.transform.CanonicalizeBindings()(self.builder.finalize())

    def call(self, call: RowCall) -> None:
        """Emit a call, for each of its rows."""
        if call.layer == SOURCE:
            for y in range(call.first, call.end):
                self.row(self.rows.network.inputs[0], y)
            return
        layer, kernel = self.rows.network.layers[call.layer], self.rows.kernels[call.layer]
        if kernel is None:
            (source,), (view,) = layer.inputs, layer.outputs
            shape = self.rows.network.features[view].shape
            self.whole[view] = self.builder.emit(relax.op.reshape(self.whole[source], shape))
        elif kernel.rows is None:
            self.emit_unsplit(layer, kernel)
        elif layer.sums:
            for y in range(call.first, call.end):
                self.add(layer, kernel, y)
        else:
            for y in range(call.first, call.end):
                self.make(layer, kernel, y)

    def emit_unsplit(self, layer: Layer, kernel: LayerKernel) -> None:
        """Emit the call of a layer on unsplit tensors."""
        assert kernel.whole is not None
        arguments: list[Any] = [compat.constant(a) for a in kernel.constants]
        for position, feature in zip(kernel.data, layer.inputs, strict=True):
            param = kernel.whole.params[position]
            arguments.insert(position, self.shaped(self.full(feature), param))
        features = self.rows.network.features
        types = [
            relax.TensorType(compat.buffer_shape(param), features[made].dtype)
            for param, made in zip(
                kernel.whole.params[-len(layer.outputs) :], layer.outputs, strict=True
            )
        ]
        variable = self.builder.add_func(_bare(kernel.whole), f"{kernel.name}_row")
        single = len(types) == 1
        call = relax.call_tir(variable, arguments, types[0] if single else types)
        made = self.builder.emit(call)
        for index, feature in enumerate(layer.outputs):
            part = made if single else self.builder.emit(relax.TupleGetItem(made, index))
            self.whole[feature] = self.in_shape(part, features[feature].shape)

    def full(self, feature: int) -> Any:
        """Return an unsplit tensor."""
        return self.whole[feature]

    def add(self, layer: Layer, kernel: LayerKernel, y: int) -> None:
        """Accumulate a row: the first call initialises the sums, later calls continue in place."""
        assert kernel.rows is not None
        sums, row = layer.outputs[0], self.row(layer.inputs[0], y)
        function = kernel.rows.variants[kernel.rows.variant_of[y]]
        if sums not in self.whole:
            known = self.rows.network.features[sums]
            self.whole[sums] = self.emit(function, kernel.name, [row], known.shape, known.dtype)
            return
        self.whole[sums] = self.emit_in_place(function, kernel.name, [row], self.whole[sums])

    def make(self, layer: Layer, kernel: LayerKernel, y: int) -> None:
        """Emit the call that computes a row, as a tensor of its own or as part of one."""
        assert kernel.rows is not None
        made = layer.outputs[0]
        function = kernel.rows.variants[kernel.rows.variant_of[y]]
        arguments = [
            self.shaped(self.read(layer, kernel, slot, y), param)
            for slot, param in zip(kernel.rows.slots, function.params, strict=False)
        ]
        for parameter in kernel.rows.complete:
            whole = self.full(layer.inputs[kernel.data.index(parameter)])
            arguments.append(self.shaped(whole, function.params[len(arguments)]))
        arguments += [compat.constant(a) for a in kernel.constants]
        known = self.rows.network.features[made]
        if made not in self.rows.network.contiguous:
            self.made[made, y] = self.emit(
                function, kernel.name, arguments, known.shape[2:], known.dtype
            )
        elif made in self.whole:
            into = self.part(function, known.shape, y)
            self.whole[made] = self.emit_in_place(into, kernel.name, arguments, self.whole[made])
        else:
            into = self.part(function, known.shape, y)
            self.whole[made] = self.emit(into, kernel.name, arguments, known.shape, known.dtype)

    def read(self, layer: Layer, kernel: LayerKernel, slot: RowParam, y: int) -> Any:
        """Return the row that a slot reads for row ``y``; a padding row outside of the tensor."""
        feature = layer.inputs[kernel.data.index(slot.parameter)]
        row = slot.rows[y]
        if row is not None:
            return self.row(feature, row)
        assert kernel.rows is not None
        known = self.rows.network.features[feature]
        value = kernel.rows.padding[slot.parameter]
        key = (known.dtype, value, feature)
        if key not in self.pads:
            array = np.full(known.shape[2:], value, known.dtype)
            self.pads[key] = compat.constant(array)
        return self.pads[key]

    def shaped(self, value: relax.Expr, param: relax.Var) -> Any:
        """Return a tensor in the shape of a kernel's parameter."""
        return self.in_shape(value, compat.buffer_shape(param))

    def in_shape(self, value: relax.Expr, shape: Sequence[int]) -> Any:
        """Return a tensor in another shape."""
        if compat.static_shape(value.ty, "tensor") == tuple(shape):
            return value
        return self.builder.emit(relax.op.reshape(value, shape))

    def row(self, feature: int, y: int) -> Any:
        """Return the tensor of one row, copied out of an unsplit tensor if there is one."""
        known = self.rows.network.features[feature]
        if known.height == 1 and feature in self.whole and len(known.shape) != 4:
            return self.whole[feature]
        if (feature, y) not in self.made:
            copy = _row_of(known.shape, known.dtype, y)
            self.made[feature, y] = self.emit(
                copy, "take_row", [self.full(feature)], known.shape[2:], known.dtype
            )
        return self.made[feature, y]

    def part(self, function: tirx.PrimFunc, shape: Sequence[int], y: int) -> Any:
        """Return a row kernel that writes row ``y`` of an unsplit tensor."""
        key = (function, tuple(shape), y)
        if key not in self.kernels:
            self.kernels[key] = _into_row(function, shape, y)
        return self.kernels[key]

    def emit(
        self,
        kernel: tirx.PrimFunc,
        name: str,
        arguments: list[Any],
        shape: Sequence[int],
        dtype: str,
    ) -> Any:
        """Emit a call whose result is a tensor of its own."""
        variable = self.builder.add_func(_bare(kernel), f"{name}_row")
        ty = relax.TensorType(list(shape), dtype)
        return self.builder.emit(relax.call_tir(variable, arguments, ty))

    def emit_in_place(
        self, kernel: tirx.PrimFunc, name: str, arguments: list[Any], taken: relax.Var
    ) -> Any:
        """Emit a call that updates ``taken``, the kernel's last parameter."""
        arranged = _result_first(kernel)
        variable = self.builder.add_func(_bare(arranged), f"{name}_more")
        call = relax.op.call_tir_inplace(variable, relax.Tuple([taken, *arguments]), [0], taken.ty)
        return self.builder.emit(call)


def _bare(kernel: tirx.PrimFunc) -> Any:
    """Return a kernel that passes do not transform: its loops in a single block."""
    if not compat.has_blocks(kernel):
        root = s_tir.SBlock([], [], [], "root", kernel.body)
        body = s_tir.SBlockRealize([], True, root)
        kernel = tirx.PrimFunc(kernel.params, body, kernel.ret_type, kernel.attrs)
    return kernel.without_attr("global_symbol").with_attr({"op_pattern": OPAQUE, LEAN: True})


def _result_first(kernel: tirx.PrimFunc) -> Any:
    *params, result = kernel.params
    made = tirx.PrimFunc([result, *params], kernel.body, kernel.ret_type, kernel.attrs)
    return made.without_attr("tirx.noalias")


def _into_row(kernel: tirx.PrimFunc, shape: Sequence[int], y: int) -> Any:
    *params, row = kernel.params
    dtype = compat.buffer_dtype(row)
    whole = tirx.decl_buffer(tuple(shape), dtype, "whole")
    place = (0, y, *(0,) * (len(shape) - 2))
    body = tirx.SeqStmt([tirx.DeclBuffer(row, data=tirx.address_of(whole[place])), kernel.body])
    return tirx.PrimFunc([*params, whole], body, kernel.ret_type, kernel.attrs)


def _row_of(shape: Sequence[int], dtype: str, y: int) -> Any:
    from tvm import te

    x = te.placeholder(tuple(shape), dtype, "x")
    row = te.compute(tuple(shape[2:]), lambda i, c: x[0, y, i, c], name="row")
    return te.create_prim_func([x, row], index_dtype_override="int64")
