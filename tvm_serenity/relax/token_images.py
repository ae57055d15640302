"""Tokens as images of width one: the rows of a sequence of vectors are its tokens.

Row streaming and the kernel library need images ``[1, height, width, channels]``. A sequence
``[1, tokens, channels]`` or ``[tokens, channels]`` has the bytes of an image ``[1, tokens, 1,
channels]``. Each result of a dense layer on several tokens, and all such results that depend on it,
become images: a dense layer is a convolution with 1x1 filters, other kernels read and write the
image in place of the sequence (``kernels/permuted.py``). The computation stays the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import tvm
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.kernels.convolution import Dense, convolution
from tvm_serenity.kernels.permuted import with_images
from tvm_serenity.kernels.spec_read import kind_of, spec_of
from tvm_serenity.operators import RELAX
from tvm_serenity.operators.scene import EIGHT
from tvm_serenity.relax.bindings import (
    bindings,
    dataflow_main,
    emitted,
    kernel_of_blocks,
    renewed,
    rewritten,
)


def token_images(mod: tvm.IRModule) -> Any:
    """Return ``mod``, of integer kernels, with sequences of vectors as images of width one.

    Parameters and results keep their shapes. A module without dense layers on several tokens is
    returned unchanged.
    """
    function = dataflow_main(mod)
    if function is None or not any(_dense(mod, value) for _, value in bindings(function)):
        return mod

    def writer(builder: relax.BlockBuilder, new: dict[Any, Any]) -> Any:
        return _Writer(mod, builder, new)

    return rewritten(mod, function, writer)


def _dense(mod: tvm.IRModule, value: relax.Expr) -> Dense | None:
    """Return the record of a dense layer of 8 bits on several tokens; None for anything else."""
    kernel = kernel_of_blocks(mod, value)
    if kernel is None or kind_of(kernel) != Dense.__name__ or _tokens(value) is None:
        return None
    arguments = compat.kernel_arguments(value)
    constants = [compat.constant_array(a) if compat.is_constant(a) else a for a in arguments]
    spec = spec_of(kernel, constants)
    types = {spec.dtype, spec.requantise.dtype}
    known = isinstance(arguments[0], relax.Var) and all(map(compat.is_constant, arguments[1:]))
    return spec if known and types <= set(EIGHT) else None


def _tokens(expr: relax.Expr) -> tuple[int, int] | None:
    """Return the tokens and channels of a sequence of several vectors; None for other tensors."""
    shape = compat.constant_shape(expr.ty)
    if shape is None or len(shape) not in (2, 3) or shape[-2] < 2:
        return None
    if len(shape) == 3 and shape[0] != 1:
        return None
    return shape[-2], shape[-1]


@dataclass
class _Writer:
    """A writer that converts a function.

    ``new``: replacements of variables; ``images``: their images; ``shaped``: the variables whose
    bytes they have, which are written where they are needed. A variable is in one or more of them.
    """

    mod: tvm.IRModule
    builder: relax.BlockBuilder
    new: dict[Any, Any]
    images: dict[Any, Any] = field(default_factory=dict)
    shaped: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.parameters = {param for param in self.new if _tokens(param) is not None}

    def bind(self, var: relax.Var, value: relax.Expr) -> None:
        """Write one binding, as an image if possible."""
        reshapes = compat.is_call(value) and compat.op_name(value) == "relax.reshape"
        if reshapes and isinstance(value.args[0], relax.Var):
            self.shaped[var] = value.args[0]
            return
        made, is_image = self.converted(value)
        if made is None:
            self.new[var] = emitted(self.builder, self.given(value), var.name)
        else:
            (self.images if is_image else self.new)[var] = self.builder.emit(made, var.name)

    def converted(self, value: relax.Expr) -> tuple[Any, bool]:
        """Return an expression that reads images, and whether it is one; None for no change."""
        if not compat.is_call(value):
            return None, False
        dense = _dense(self.mod, value)
        if dense is not None:
            return self.convolution(value, dense), True
        kernel = kernel_of_blocks(self.mod, value)
        if kernel is not None:
            return self.on_images(value, kernel)
        known = RELAX.get(compat.op_name(value))
        maps = known is not None and known.maps
        if not maps or _tokens(value) is None or not any(map(self.is_image, value.args)):
            return None, False
        if any(compat.is_constant(a) and compat.static_shape(a.ty, "operand") for a in value.args):
            return None, False
        given = [self.image(a) if self.is_image(a) else self.given(a) for a in value.args]
        return compat.call_like(value, given), True

    def convolution(self, call: relax.Call, dense: Dense) -> Any:
        """Return a dense layer as a convolution with 1x1 filters."""
        source, weights, *others = compat.kernel_arguments(call)
        spec = replace(dense.pointwise, pieces=((1, dense.rows, 1, dense.inputs),))
        filters = compat.constant(compat.constant_array(weights).reshape(spec.weight_shape))
        return self.call(call, convolution(spec), [self.image(source), filters, *others], True)

    def on_images(self, call: relax.Call, kernel: Any) -> tuple[Any, bool]:
        """Return the call of a kernel that reads images, and whether it makes one."""
        arguments = compat.kernel_arguments(call)
        if not any(map(self.is_image, arguments)):
            return None, False
        tokens = {t[0] for a in arguments if self.is_image(a) and (t := _tokens(a)) is not None}
        read = [i for i, a in enumerate(arguments) if self.is_image(a) or _is_one_of(a, tokens)]
        made = _tokens(call)
        is_image = made is not None and made[0] in tokens
        both = [*read, *([len(arguments)] if is_image else [])]
        given = [self.image(a) if i in read else self.given(a) for i, a in enumerate(arguments)]
        return self.call(call, with_images(kernel, both), given, is_image), is_image

    def call(self, call: relax.Call, kernel: Any, given: list[Any], is_image: bool) -> Any:
        """Return the call of another kernel in place of a call's own."""
        variable = self.builder.add_func(kernel, compat.called_kernel(call).name_hint)
        shape = _image_shape(call) if is_image else compat.static_shape(call.ty, "result")
        ty = relax.TensorType(list(shape), compat.dtype_name(call.ty))
        return relax.call_tir(variable, relax.Tuple(given), ty)

    def is_image(self, expr: relax.Expr) -> bool:
        """Return whether a sequence has an image, or has the bytes of one."""
        while expr in self.shaped and expr not in self.images and _tokens(expr) is not None:
            source = self.shaped[expr]
            if _tokens(source) != _tokens(expr):
                shape = compat.static_shape(source.ty, "source")
                return len(shape) == 4 and shape[:2] == _image_shape(expr)[:2]
            expr = source
        return expr in self.images or expr in self.parameters

    def image(self, expr: relax.Expr) -> Any:
        """Return the image of a sequence."""
        if expr not in self.images:
            source = self.shaped.get(expr)
            if source is not None and _tokens(source) == _tokens(expr):
                self.images[expr] = self.image(source)
            else:
                held = self.given(expr if source is None else source)
                made = relax.op.reshape(held, list(_image_shape(expr)))
                self.images[expr] = self.builder.emit(made)
        return self.images[expr]

    def given(self, expr: relax.Expr) -> Any:
        """Return an expression of the old function with variables replaced, in its old shape."""
        if not isinstance(expr, relax.Var):
            return renewed(expr, self.given)
        if expr not in self.new:
            shape = compat.static_shape(expr.ty, "tensor")
            source = self.shaped.get(expr)
            if source is None or self.is_image(expr):
                held = self.image(expr)
            else:
                held = self.image(source) if self.is_image(source) else self.given(source)
            self.new[expr] = self.builder.emit(relax.op.reshape(held, list(shape)), expr.name)
        return self.new[expr]


def _image_shape(expr: relax.Expr) -> Sequence[int]:
    tokens = _tokens(expr)
    assert tokens is not None
    return (1, tokens[0], 1, tokens[1])


def _is_one_of(expr: relax.Expr, tokens: set[int]) -> bool:
    """Return whether an expression is a variable with as many tokens."""
    found = _tokens(expr) if isinstance(expr, relax.Var) else None
    return found is not None and found[0] in tokens
