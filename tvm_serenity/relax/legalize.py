"""Operators that TVM 0.27 cannot turn into kernels, and what it does instead here.

``relax.full`` of an infinite value (the mask of every attention from PyTorch) ends in a TypeError
inside of ``topi.full``.
"""

import math
from collections.abc import Callable
from typing import Any

import tvm
from tvm import relax, te, tirx

LEVEL = 11
"""Above that of TVM's own registrations."""


def register() -> None:
    """Register the replacements with TVM; they fall back on its own where these work."""
    for name in ("relax.full", "relax.full_like"):
        stock = tvm.ir.Op.get(name).get_attr("FLegalize")
        tvm.ir.register_op_attr(name, "FLegalize", _full(stock), LEVEL)


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
    """The number a constant holds."""
    value: Any = getattr(expr, "value", None)
    array = value.numpy() if hasattr(value, "numpy") else None
    if array is None or array.size != 1 or array.dtype.kind != "f":
        return None
    return float(array.reshape(()))
