"""Replacements for operators that TVM 0.27 cannot lower to kernels.

``relax.full`` with an infinite value (the mask of PyTorch's attention) raises a TypeError in
``topi.full``.

``relax.topk`` calls a function of TVM's runtime, which firmware lacks.

``relax.nn.conv2d_transpose`` only has NCHW kernels; the replacement also has NHWC, with weights in
HWIO.
"""

import math
from collections.abc import Callable
from typing import Any

import tvm
from tvm import relax, te, tirx

from tvm_serenity.kernels.largest import largest
from tvm_serenity.kernels.transposed import real_transposed

LEVEL = 11
"""The registration level, above TVM's own."""


def register() -> None:
    """Register the replacements with TVM; they fall back to TVM's lowering if that works."""
    for name in ("relax.full", "relax.full_like"):
        stock = tvm.ir.Op.get(name).get_attr("FLegalize")
        tvm.ir.register_op_attr(name, "FLegalize", _full(stock), LEVEL)
    stock = tvm.ir.Op.get("relax.topk").get_attr("FLegalize")
    tvm.ir.register_op_attr("relax.topk", "FLegalize", _topk(stock), LEVEL)
    name = "relax.nn.conv2d_transpose"
    stock = tvm.ir.Op.get(name).get_attr("FLegalize")
    tvm.ir.register_op_attr(name, "FLegalize", _conv2d_transpose(stock), LEVEL)


def _conv2d_transpose(stock: Callable[..., Any]) -> Any:
    def legalize(builder: relax.BlockBuilder, call: relax.Call) -> Any:
        attrs = call.attrs
        if (str(attrs.data_layout), str(attrs.kernel_layout)) != ("NHWC", "HWIO"):
            return stock(builder, call)
        if int(attrs.groups) != 1 or any(int(d) != 1 for d in attrs.dilation):
            return call
        strides, (top, left, *_) = ([int(v) for v in v] for v in (attrs.strides, attrs.padding))
        made = [int(extent) for extent in call.ty.shape]

        def compute(x: te.Tensor, weight: te.Tensor) -> Any:
            return real_transposed(x, weight, made, (strides[0], strides[1]), (top, left))

        return builder.call_te(compute, *call.args, primfunc_name_hint="conv2d_transpose")

    return legalize


def _topk(stock: Callable[..., Any]) -> Any:
    def legalize(builder: relax.BlockBuilder, call: relax.Call) -> Any:
        attrs, given = call.attrs, call.args[0]
        extents = getattr(given.ty.shape, "values", None)
        if extents is None or not all(isinstance(e, tirx.IntImm) for e in extents):
            return stock(builder, call)
        shape = tuple(int(e) for e in extents)
        axis = int(attrs.axis) % len(shape)
        count = int(attrs.k) if 0 < int(attrs.k) < shape[axis] else shape[axis]
        dtype, index = str(given.ty.dtype.dtype), str(attrs.dtype)
        kernel = largest(shape, dtype, count, axis, index, not bool(attrs.largest))
        made = (*shape[:axis], count, *shape[axis + 1 :])
        types = [relax.TensorType(made, dtype), relax.TensorType(made, index)]
        found = relax.call_tir(builder.add_func(kernel, "topk"), [given], types)
        if str(attrs.ret_type) == "both":
            return found
        return relax.TupleGetItem(builder.emit(found), ("values", "indices").index(attrs.ret_type))

    return legalize


def _full(stock: Callable[..., Any]) -> Any:
    def legalize(builder: relax.BlockBuilder, call: relax.Call) -> Any:
        value = _fill_value(call.args[1])
        if value is None or math.isfinite(value):
            return stock(builder, call)
        dtype = str(call.ty.dtype.dtype)

        def infinite(*shape: tirx.Expr) -> Any:
            return te.compute(shape, lambda *_: tirx.const(value, dtype), name="full")

        return builder.call_te(infinite, *call.ty.shape.values, primfunc_name_hint="full")

    return legalize


def _fill_value(expr: relax.Expr) -> float | None:
    """Return the number that a constant holds."""
    value: Any = getattr(expr, "value", None)
    array = value.numpy() if hasattr(value, "numpy") else None
    if array is None or array.size != 1 or array.dtype.kind != "f":
        return None
    return float(array.reshape(()))
