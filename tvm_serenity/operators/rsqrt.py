"""RSQRT: reciprocal square root, in fixed point for 8 bits, interpolated for 16."""

from collections.abc import Callable

import numpy as np

from tvm_serenity.operators.functions import Function, Sampled, Widths, function
from tvm_serenity.operators.record import elementwise
from tvm_serenity.operators.scene import SIGNED, Array
from tvm_serenity.operators.table_bounds import EntryBounds, Real, nearest
from tvm_serenity.quantize import lookups


def _inverse_root(op: Function) -> Callable[[Array], Array]:
    return lookups.rsqrt_or(32767 * float(np.float32(op.result.scale)))


def _exact(op: Function) -> Real:
    most = (op.result.params.limits[1] - op.result.zero) * op.result.scale
    return lambda x: np.where(x <= 0, most, 1 / np.sqrt(x))


def _table(op: Function) -> Array:
    return lookups.inverse_root(op.source.params, op.result.params)


def _bounds(op: Function) -> EntryBounds:
    """Return the bounds in fixed point, whose errors are far below a step of the result."""
    return nearest(_exact(op), op.source.params, op.result.params, 0.02)


_SAMPLED = Sampled("RSQRT", _inverse_root, _exact)
OPERATORS = (
    function(
        elementwise("RSQRT", relax="rsqrt", relay="rsqrt", real=lambda x: 1 / np.sqrt(x)),
        Widths(
            table=_table,
            bounds=_bounds,
            wide=_SAMPLED.wide,
            wide_reference=_SAMPLED.reference,
            dtypes=SIGNED,
        ),
    ),
)
