"""SQRT: truncated square roots; 0 for negative values."""

import numpy as np

from tvm_serenity.operators.clamped import clamped
from tvm_serenity.operators.functions import Function, Widths, function
from tvm_serenity.operators.record import elementwise
from tvm_serenity.operators.scene import SIGNED, Array, Calls, Expr
from tvm_serenity.operators.table_bounds import EntryBounds, cut_off
from tvm_serenity.quantize import lookups


def _table(op: Function) -> Array:
    return lookups.square_root(op.source.params, op.result.params)


def _bounds(op: Function) -> EntryBounds:
    return cut_off(lambda x: np.sqrt(np.maximum(x, 0)), op.source.params, op.result.params)


def _wide(op: Function, x: Expr, calls: Calls) -> Expr:
    from tvm_serenity.kernels import sixteen

    kernel = sixteen.square_root(op.source.shape, op.source.params, op.result.params)
    return calls.kernel("q_sqrt", kernel, x)


def _wide_reference(op: Function, x: Array) -> Array:
    f32 = np.float32
    reals = (x.astype(np.int64) - op.source.zero).astype(f32) * f32(op.source.scale)
    whole = np.trunc(np.sqrt(np.maximum(reals, f32(0))) / f32(op.result.scale))
    return clamped(whole.astype(np.int64), op.result)


OPERATORS = (
    function(
        elementwise("SQRT", "Sqrt", relax="sqrt", relay="sqrt", real=np.sqrt),
        Widths(
            table=_table,
            bounds=_bounds,
            wide=_wide,
            wide_reference=_wide_reference,
            dtypes=SIGNED,
        ),
    ),
)
