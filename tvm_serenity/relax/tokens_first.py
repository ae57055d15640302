"""Attention token by token: products of heads on tensors whose tokens come before their heads.

Files compute attention head by head: queries, keys and values [1, tokens, heads, channels] are
transposed to [1, heads, tokens, channels] before two products, and the result is transposed back.
Here a product reads and writes tensors in the order [1, tokens, heads, channels] (``SWAPPED``), and
so do the operators between both products. A transpose becomes an index map of the kernel that reads
it (``kernels/permuted.py``), and a row of each tensor is a token, so that bands of queries follow
one another. The arithmetic of each element is unchanged.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import tvm
from tvm import relax, s_tir
from tvm.relax.op import op_attrs

from tvm_serenity import compat
from tvm_serenity.kernels.loops import blocks_of, is_reduction
from tvm_serenity.kernels.permuted import SWAPPED, permuted
from tvm_serenity.kernels.records import BatchMatmul
from tvm_serenity.kernels.spec_read import kind_of, spec_of
from tvm_serenity.operators import RELAX
from tvm_serenity.relax.bindings import (
    bindings,
    dataflow_main,
    emitted,
    kernel_of_blocks,
    renewed,
    rewritten,
)

RANK = 4
"""The axes of a tensor with heads: batch, heads, tokens, channels."""


def tokens_first(mod: tvm.IRModule) -> Any:
    """Return ``mod``, of integer kernels, with attention computed token by token.

    Parameters and results keep their axes. A module without such products is returned unchanged.
    """
    function = dataflow_main(mod)
    within = set() if function is None else _operands(mod, function)
    if not within:
        return mod

    def writer(builder: relax.BlockBuilder, new: dict[Any, Any]) -> Any:
        return _Writer(mod, builder, new, within)

    return rewritten(mod, function, writer)


def _product(mod: tvm.IRModule, value: relax.Expr) -> bool:
    """Return whether an expression is a product of two tensors with heads before tokens."""
    kernel = _kernel(mod, value)
    known = kernel is not None and kind_of(kernel) == BatchMatmul.__name__
    return known and not any(spec_of(kernel).axes)


def _operands(mod: tvm.IRModule, function: relax.Function) -> set[Any]:
    """Return the operands of products, and what they are computed of element by element."""
    found: set[Any] = set()
    for var, value in reversed(bindings(function)):
        if _product(mod, value) or (var in found and _on_elements(mod, value)):
            found.update(a for a in compat.kernel_arguments(value) if isinstance(a, relax.Var))
    return found


def _on_elements(mod: tvm.IRModule, value: relax.Expr) -> bool:
    """Return whether an expression calls a kernel of one stage that reduces nothing."""
    kernel = _kernel(mod, value)
    if kernel is None:
        return False
    schedule = s_tir.Schedule(tvm.IRModule({"main": kernel}))
    blocks = blocks_of(schedule)
    return len(blocks) == 1 and not is_reduction(schedule, blocks[0])


def _kernel(mod: tvm.IRModule, value: relax.Expr) -> Any:
    """Return the kernel of blocks that makes a tensor of four axes; None if there is none."""
    return kernel_of_blocks(mod, value) if _has_heads(value) else None


def _has_heads(value: relax.Expr) -> bool:
    shape = compat.constant_shape(value.ty)
    return shape is not None and len(shape) == RANK and shape[0] == 1


@dataclass
class _Writer:
    """A writer that converts a function.

    A variable of the old function is in one or more of these. ``new``: its replacement;
    ``swapped``: its replacement with the axes ``SWAPPED``; ``moved``: the variable that it is a
    transpose of, and the axes; ``shaped``: the variable that it has the bytes of. The last two are
    emitted if needed. ``within``: operands of products, and variables that depend on products.
    """

    mod: tvm.IRModule
    builder: relax.BlockBuilder
    new: dict[Any, Any]
    within: set[Any]
    swapped: dict[Any, Any] = field(default_factory=dict)
    moved: dict[Any, tuple[Any, tuple[int, ...]]] = field(default_factory=dict)
    shaped: dict[Any, Any] = field(default_factory=dict)

    def bind(self, var: relax.Var, value: relax.Expr) -> None:
        """Write one binding, token by token if it is part of attention."""
        if compat.is_call(value) and _has_heads(var):
            source = value.args[0] if value.args else None
            if isinstance(value.attrs, op_attrs.PermuteDimsAttrs) and _has_heads(source):
                self.moved[var] = source, tuple(int(axis) for axis in value.attrs.axes)
                return
            if compat.op_name(value) == "relax.reshape" and isinstance(source, relax.Var):
                self.shaped[var] = source
                return
            made = self.by_tokens(var, value)
            if made is not None:
                self.swapped[var] = self.builder.emit(made, var.name)
                self.within.add(var)
                return
        self.new[var] = emitted(self.builder, self.given(value), var.name)

    def by_tokens(self, var: relax.Var, call: relax.Call) -> Any:
        """Return the call of a kernel on tokens before heads, None outside of attention."""
        kernel = _kernel(self.mod, call)
        if kernel is None:
            return self.of_scores(call)
        arguments = compat.kernel_arguments(call)
        first = next((a for a in arguments if isinstance(a, relax.Var) and _has_heads(a)), None)
        if first is None or not (self.within & {var, first} or _product(self.mod, call)):
            return None
        if _outer(first) != _outer(call) or self.as_swapped(first) is None:
            return None
        stored: list[Any] = []
        axes: dict[int, Sequence[int]] = {len(arguments): SWAPPED}
        for position, argument in enumerate(arguments):
            expr, order = self.stored(argument)
            stored.append(expr)
            if order is not None:
                axes[position] = order
        made = permuted(kernel, axes)
        variable = self.builder.add_func(made, compat.called_kernel(call).name_hint)
        shape = compat.static_shape(call.ty, "result")
        ty = relax.TensorType([shape[axis] for axis in SWAPPED], compat.dtype_name(call.ty))
        return relax.call_tir(variable, relax.Tuple(stored), ty)

    def of_scores(self, call: relax.Call) -> Any:
        """Return an operator between products, on elements or a softmax; None for others."""
        known, source = RELAX.get(compat.op_name(call)), call.args[0] if call.args else None
        softmax = isinstance(call.attrs, op_attrs.SoftmaxAttrs)
        if not softmax and (known is None or not known.maps):
            return None
        if source not in self.within or (softmax and int(call.attrs.axis) % RANK != RANK - 1):
            return None
        if not _has_heads(source) or self.as_swapped(source) is None:
            return None
        shapes = [compat.constant_shape(argument.ty) for argument in call.args[1:]]
        if any(shape is None or math.prod(shape) != 1 for shape in shapes):
            return None
        others = [self.given(argument) for argument in call.args[1:]]
        return compat.call_like(call, [self.as_swapped(source), *others])

    def stored(self, expr: relax.Expr) -> tuple[Any, tuple[int, ...] | None]:
        """Return a tensor as it is stored, and its axes (None: as the file has them)."""
        if isinstance(expr, relax.Var) and _has_heads(expr):
            made = self.as_swapped(expr)
            if made is not None:
                return made, SWAPPED
            if expr in self.moved and expr not in self.new:
                source, axes = self.moved[expr]
                return self.given(source), tuple(axes.index(axis) for axis in range(RANK))
        return self.given(expr), None

    def as_swapped(self, var: relax.Var) -> Any:
        """Return the replacement of a variable with swapped axes if no byte moves, else None."""
        if var not in self.swapped:
            if var in self.moved and self.moved[var][1] == SWAPPED:
                self.swapped[var] = self.given(self.moved[var][0])
            elif var in self.shaped and _swaps_freely(var):
                shape = compat.static_shape(var.ty, "tensor")
                turned = [shape[axis] for axis in SWAPPED]
                self.swapped[var] = self.builder.emit(self.reshaped(self.shaped[var], turned))
        return self.swapped.get(var)

    def given(self, expr: relax.Expr) -> Any:
        """Return the replacement of an expression, with the axes of the file."""
        if not isinstance(expr, relax.Var):
            return renewed(expr, self.given)
        if expr not in self.new:
            self.new[expr] = emitted(self.builder, self.back(expr), expr.name)
        return self.new[expr]

    def back(self, var: relax.Var) -> Any:
        """Return the expression of a variable that is not written yet, with the file's axes."""
        shape = compat.static_shape(var.ty, "tensor")
        if var in self.moved:
            source, axes = self.moved[var]
            if axes == SWAPPED and source not in self.new and self.as_swapped(source) is not None:
                return self.as_swapped(source)
            return relax.op.permute_dims(self.given(source), list(axes))
        if var in self.shaped:
            return self.reshaped(self.shaped[var], shape)
        swapped = self.swapped[var]
        if _swaps_freely(var):
            return relax.op.reshape(swapped, list(shape))
        return relax.op.permute_dims(swapped, list(SWAPPED))

    def reshaped(self, source: relax.Var, shape: Sequence[int]) -> Any:
        """Return the bytes of a variable in another shape."""
        held = source
        if source not in self.new and _has_heads(source) and _swaps_freely(source):
            held = self.as_swapped(source)
        expr = self.given(source) if held is None or held is source else held
        return relax.op.reshape(expr, list(shape))


def _outer(value: relax.Expr) -> tuple[int, ...]:
    """Return batch, heads and tokens."""
    return tuple(compat.static_shape(value.ty, "tensor")[:3])


def _swaps_freely(value: relax.Expr) -> bool:
    """Return whether swapping its axes moves no byte of a tensor."""
    return 1 in compat.static_shape(value.ty, "tensor")[1:3]
