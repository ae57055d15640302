"""Conversion of one-dimensional layers to two-dimensional ones on images of width one.

Kernels and row streaming require images ``[batch, channels, height, width]``. A sequence ``[batch,
channels, length]`` has the bytes of an image ``[batch, channels, length, 1]``, so that a
convolution or pool along it becomes one with filters of width one. Each three-dimensional result of
such a layer, and all results that depend on it, are *raised* to images: axes keep their numbers, a
fourth is appended. The computation stays the same. Unknown operators read the sequence, which is
the image in another shape.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import tvm
from tvm import relax
from tvm.relax.op import op_attrs

from tvm_serenity import compat
from tvm_serenity.operators import RELAX
from tvm_serenity.relax.bindings import bindings, dataflow_main, emitted, renewed, rewritten
from tvm_serenity.relax.channels_last import (
    ALONG_ONE,
    channels_last,
    parts,
)

RANK = 3
Layer = Callable[["_Raising", relax.Call], Any]


def images_last(mod: tvm.IRModule) -> Any:
    """Return ``mod`` in NHWC, with sequences as images of width one."""
    return channels_last(as_images(mod))


def as_images(mod: tvm.IRModule) -> Any:
    """Return ``mod`` with the one-dimensional layers of ``main`` as layers on images.

    Parameters and results keep their shapes. A module without such layers is returned unchanged.
    """
    function = dataflow_main(mod)
    if function is None or not any(_layer(value) for _, value in bindings(function)):
        return mod
    return rewritten(mod, function, _Raising)


@dataclass
class _Raising:
    """A writer that converts a function; ``new``: replacements, ``raised``: image forms."""

    builder: relax.BlockBuilder
    new: dict[Any, Any]
    raised: dict[Any, Any] = field(default_factory=dict)

    def bind(self, var: relax.Var, value: relax.Expr) -> None:
        """Write one binding, as an image if possible."""
        made = self.raised_form(value)
        if made is None:
            self.new[var] = emitted(self.builder, self.given(value), var.name)
        else:
            self.raised[var] = emitted(self.builder, made, var.name)

    def raised_form(self, value: relax.Expr) -> Any:
        """Return the image form of an expression, from image forms; None if there is none."""
        if isinstance(value, relax.Var):
            return self.raised.get(value)
        if isinstance(value, relax.TupleGetItem):
            source = self.raised.get(value.tuple_value)
            whole = source is not None and _rank(value) == RANK
            return relax.TupleGetItem(source, value.index) if whole else None
        if not compat.is_call(value):
            return None
        layer = _layer(value)
        if layer is not None:
            return layer(self, value)
        operands = [part for argument in value.args for part in parts(argument)]
        if not any(part in self.raised for part in operands if isinstance(part, relax.Var)):
            return None
        known = RELAX.get(compat.op_name(value))
        if known is not None and known.maps and getattr(value.attrs, "axis", None) is None:
            if _rank(value) != RANK:
                return None
            return compat.call_like(value, [self.broadcast(a) for a in value.args])
        data, *others = value.args
        changed = _changed(value)
        if changed is None or _rank(data) not in (RANK, None):
            return None
        given = [self.given(other) for other in others]
        return compat.call_with(value, [self.image_of(data), *given], **changed)

    def image_of(self, data: relax.Expr) -> Any:
        """Return the image form of a sequence, or of each part of a tuple."""
        if isinstance(data, relax.Tuple):
            return relax.Tuple([self.image(part) for part in data.fields])
        return self.image(data)

    def image(self, expr: relax.Expr) -> Any:
        """Return the image form of a sequence."""
        if expr not in self.raised:
            made = self.shaped(self.given(expr), (*_shape(expr), 1))
            if not isinstance(expr, relax.Var):
                return made
            self.raised[expr] = made
        return self.raised[expr]

    def broadcast(self, expr: relax.Expr) -> Any:
        """Return an operand that is broadcast to a sequence, reshaped to broadcast to its image."""
        rank = _rank(expr)
        if rank == RANK:
            return self.image(expr)
        whole = self.given(expr)
        return self.shaped(whole, (*_shape(expr), 1)) if rank else whole

    def given(self, expr: relax.Expr) -> Any:
        """Return an expression of the old function with variables replaced, in its old shape."""
        if isinstance(expr, relax.Var):
            if expr not in self.new:
                self.new[expr] = self.lowered(expr)
            return self.new[expr]
        return renewed(expr, self.given)

    def lowered(self, var: relax.Var) -> Any:
        """Return the sequence of an image, or of each part of a tuple of images."""
        image = self.raised[var]
        if compat.is_tensor(var.ty):
            return self.shaped(image, _shape(var))
        held = [self.builder.emit(relax.TupleGetItem(image, i)) for i in range(len(var.ty.fields))]
        shapes = [tuple(compat.static_shape(part, "tensor")) for part in var.ty.fields]
        return relax.Tuple([self.shaped(p, s) for p, s in zip(held, shapes, strict=True)])

    def shaped(self, expr: relax.Expr, shape: tuple[int, ...]) -> Any:
        """Return a tensor in another shape."""
        if tuple(_shape(expr)) == shape:
            return expr
        if compat.is_constant(expr):
            return compat.constant(compat.constant_array(expr).reshape(shape))
        return self.builder.emit(relax.op.reshape(expr, list(shape)))


def _convolution(raising: _Raising, call: relax.Call) -> Any:
    """Return a convolution, or a transposed one, with filters of width one."""
    attrs, weights = call.attrs, call.args[1]
    options: dict[str, Any] = {
        "strides": (*_ints(attrs.strides), 1),
        "padding": _around(attrs.padding),
        "dilation": (*_ints(attrs.dilation), 1),
        "groups": int(attrs.groups),
        "data_layout": "NCHW",
        "kernel_layout": str(attrs.kernel_layout).replace("W", "HW"),
        "out_dtype": compat.dtype_name(call.ty),
    }
    filters = raising.shaped(raising.given(weights), (*_shape(weights), 1))
    image = raising.image(call.args[0])
    if isinstance(attrs, op_attrs.Conv1DTransposeAttrs):
        more = (*_ints(attrs.output_padding), 0)
        return relax.op.nn.conv2d_transpose(image, filters, output_padding=more, **options)
    return relax.op.nn.conv2d(image, filters, **options)


def _pool(raising: _Raising, call: relax.Call) -> Any:
    """Return a pool with windows of width one."""
    attrs = call.attrs
    pool = getattr(relax.op.nn, compat.op_name(call).rsplit(".", 1)[1].replace("1d", "2d"))
    return pool(
        raising.image(call.args[0]),
        pool_size=(*_ints(attrs.pool_size), 1),
        strides=(*_ints(attrs.strides), 1),
        padding=_around(attrs.padding),
        dilation=(*_ints(attrs.dilation), 1),
        ceil_mode=bool(attrs.ceil_mode),
        count_include_pad=bool(attrs.count_include_pad),
        layout="NCHW",
    )


def _layer(value: relax.Expr) -> Layer | None:
    """Return the converter of a one-dimensional channels-first layer; None for other operators."""
    if not compat.is_call(value):
        return None
    attrs = value.attrs
    if isinstance(attrs, op_attrs.Conv1DAttrs | op_attrs.Conv1DTransposeAttrs):
        layouts = (str(attrs.data_layout), str(attrs.kernel_layout))
        return _convolution if layouts in (("NCW", "OIW"), ("NCW", "IOW")) else None
    if isinstance(attrs, op_attrs.Pool1DAttrs):
        return _pool if str(attrs.layout) == "NCW" else None
    return None


def _changed(call: relax.Call) -> dict[str, Any] | None:
    """Return the attributes for images; None if there are none."""
    attrs = call.attrs
    if isinstance(attrs, op_attrs.PadAttrs):
        return {"pad_width": [*_ints(attrs.pad_width), 0, 0]}
    if isinstance(attrs, ALONG_ONE) and attrs.axis is not None:
        return {"axis": int(attrs.axis) % RANK}
    if isinstance(attrs, op_attrs.StatisticalAttrs) and attrs.axis is not None and attrs.keepdims:
        return {"axis": [int(a) % RANK for a in attrs.axis]}
    return None


def _around(padding: Any) -> tuple[int, int, int, int]:
    before, after = (_ints(padding) * 2)[:2]
    return before, 0, after, 0


def _ints(values: Any) -> list[int]:
    return [int(v) for v in values]


def _shape(expr: relax.Expr) -> tuple[int, ...]:
    return tuple(compat.static_shape(expr.ty, "tensor"))


def _rank(expr: relax.Expr) -> int | None:
    return int(expr.ty.ndim) if compat.is_tensor(expr.ty) else None
