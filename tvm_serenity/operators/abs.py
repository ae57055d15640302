"""ABS: absolute values."""

import numpy as np

from tvm_serenity.operators.clamped import clamped
from tvm_serenity.operators.functions import Function, Widths, function
from tvm_serenity.operators.record import elementwise
from tvm_serenity.operators.scene import SIGNED, Array, Calls, Expr
from tvm_serenity.operators.table_bounds import EntryBounds, nearest, scaled_by
from tvm_serenity.quantize import lookups
from tvm_serenity.quantize.fixed import multiplier, scaled


def _table(op: Function) -> Array:
    return lookups.absolute(op.source.params, op.result.params)


def _bounds(op: Function) -> EntryBounds:
    source, result = op.source.params, op.result.params
    ratio = float(np.float32(source.scale) / np.float32(result.scale))
    if source.scale == result.scale:  # no multiplication
        return nearest(np.abs, source, result)
    return scaled_by((ratio, ratio), source, result, size=True)


def _wide(op: Function, x: Expr, calls: Calls) -> Expr:
    from tvm_serenity.kernels import sixteen

    kernel = sixteen.absolute(op.source.shape, op.source.params, op.result.params)
    return calls.kernel("q_abs", kernel, x)


def _wide_reference(op: Function, x: Array) -> Array:
    """``AbsEvalQuantized``: no multiplication if input and result have the same scale."""
    size = np.abs(x.astype(np.int64) - op.source.zero)
    if op.source.scale != op.result.scale:
        m = multiplier(float(np.float32(op.source.scale) / np.float32(op.result.scale)))
        size = scaled(size, m.value[0], m.shift[0])
    return clamped(size, op.result)


OPERATORS = (
    function(
        elementwise("ABS", "Abs", relax="abs", relay="abs", real=np.abs),
        Widths(
            table=_table,
            bounds=_bounds,
            wide=_wide,
            wide_reference=_wide_reference,
            dtypes=SIGNED,
        ),
    ),
)
