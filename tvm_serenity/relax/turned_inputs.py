"""Fusion of input transposes into the kernels that read them.

With channels last, an image in the file's layout is transposed before its first convolution: a copy
as large as the image, live beside the convolution's result. If only kernels of TVM's fusion read
that copy, each is fused with the transpose, which the lean schedule computes at each element read.
Images with more than ``MOST_CHANNELS`` channels keep the copy: the elements of one sum would be
scattered in memory.
"""

from typing import Any

import tvm
from tvm import relax, tirx

from tvm_serenity import compat
from tvm_serenity.kernels.build import OPAQUE
from tvm_serenity.kernels.nodes import parts
from tvm_serenity.relax.bindings import bindings, dataflow_main, renewed, rewritten, variables

MOST_CHANNELS = 8
"""The most channels of an image that is read in the file's layout."""


def turned_inputs(mod: tvm.IRModule) -> Any:
    """Return ``mod``, lowered, without transposed copies of its parameters."""
    function = dataflow_main(mod)
    if function is None:
        return mod
    turned = _turned(mod, function)
    if not turned:
        return mod

    def writer(builder: relax.BlockBuilder, new: dict[Any, Any]) -> Any:
        return _Reading(mod, builder, new, turned)

    return compat.fuse_primitives()(rewritten(mod, function, writer))


def _turned(mod: tvm.IRModule, function: relax.Function) -> dict[Any, Any]:
    """Return the calls that only transpose a parameter and whose readers may be fused with it."""
    params = set(function.params)
    found = {
        var: value
        for var, value in bindings(function)
        if _turns(mod, value)
        and compat.kernel_arguments(value)[0] in params
        and compat.static_shape(value.ty, "image")[-1] <= MOST_CHANNELS
    }
    for var, value in bindings(function):
        if var not in found and not _may_turn(mod, value):
            used = variables(value)
            found = {v: call for v, call in found.items() if v not in used}
    result = variables(function.body.body)
    return {v: call for v, call in found.items() if v not in result}


def _turns(mod: tvm.IRModule, value: relax.Expr) -> bool:
    """Return whether a call transposes an image."""
    name = compat.called_kernel(value) if compat.is_call(value) else None
    if name is None or compat.overwritten(value) is not None or not compat.has_blocks(mod[name]):
        return False
    stores = parts(mod[name].body, tirx.BufferStore)
    if len(stores) != 1 or not isinstance(stores[0].value, tvm.ir.TensorLoad):
        return False
    read, written = list(stores[0].value.indices), list(stores[0].indices)
    if not all(isinstance(index, tirx.Var) for index in [*read, *written]):
        return False
    kept = len(read) == len(written) == 4 and all(any(r.same_as(w) for w in written) for r in read)
    return kept and len(compat.kernel_arguments(value)) == 1


def _may_turn(mod: tvm.IRModule, value: relax.Expr) -> bool:
    """Return whether a call runs a kernel that may be fused with others."""
    name = compat.called_kernel(value) if compat.is_call(value) else None
    if name is None or compat.overwritten(value) is not None or not compat.is_tensor(value.ty):
        return False
    return compat.has_blocks(mod[name]) and int((mod[name].attrs or {}).get("op_pattern", 0)) != (
        OPAQUE
    )


class _Reading:
    """A writer that fuses transposes into the kernels that read them."""

    def __init__(
        self,
        mod: tvm.IRModule,
        builder: relax.BlockBuilder,
        new: dict[Any, Any],
        turned: dict[Any, Any],
    ) -> None:
        self.mod, self.builder, self.new, self.turned = mod, builder, new, turned

    def bind(self, var: relax.Var, value: relax.Expr) -> None:
        """Write one binding, unless it only transposes."""
        if var in self.turned:
            return
        called = compat.is_call(value) and compat.called_kernel(value) is not None
        if called and any(a in self.turned for a in compat.kernel_arguments(value)):
            self.new[var] = self.builder.emit(self.fused(value), var.name)
            return
        made = self.given(value)
        self.new[var] = self.builder.emit(made, var.name)

    def fused(self, call: relax.Call) -> Any:
        """Return the call of a function of both kernels."""
        arguments = compat.kernel_arguments(call)
        sources = [self.turned.get(a) for a in arguments]
        origins = [
            a if turning is None else compat.kernel_arguments(turning)[0]
            for a, turning in zip(arguments, sources, strict=True)
        ]
        params = [relax.Var(f"p{i}", origin.ty) for i, origin in enumerate(origins)]
        inner = relax.BlockBuilder()
        name = f"{compat.called_kernel(call).name_hint}_turned"
        with inner.function(name, params, attrs={"Primitive": True}):
            with inner.dataflow():
                read: list[Any] = []
                for param, turning in zip(params, sources, strict=True):
                    held = param if turning is None else _called(turning, [param])
                    read.append(held if turning is None else inner.emit(held))
                made = inner.emit_output(_called(call, read))
            inner.emit_func_output(made)
        function = self.builder.add_func(inner.get()[name], name)
        return relax.Call(function, [self.given(origin) for origin in origins])

    def given(self, value: relax.Expr) -> Any:
        """Return an expression with its variables replaced."""
        if isinstance(value, relax.Var):
            return self.new[value]
        return renewed(value, self.given)


def _called(call: relax.Call, arguments: list[Any]) -> Any:
    """Return the call of a kernel with other arguments."""
    return relax.call_tir(compat.called_kernel(call), relax.Tuple(arguments), call.ty)
