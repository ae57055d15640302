"""RSQRT: one over the square root; in fixed point for 8 bits, between samples for 16."""

from collections.abc import Callable

import numpy as np

from tvm_serenity.operators.functions import Function, Widths, function, sampled, sampled_reference
from tvm_serenity.operators.record import elementwise
from tvm_serenity.operators.scene import SIGNED, Array
from tvm_serenity.operators.table_bounds import EntryBounds, nearest
from tvm_serenity.quantize import lookups
from tvm_serenity.quantize.params import Affine


def _inverse_root(_source: Affine, result: Affine) -> Callable[[Array], Array]:
    return lookups.rsqrt_or(32767 * float(np.float32(result.scale)))


def _table(op: Function) -> Array:
    return lookups.inverse_root(op.source.params, op.result.params)


def _bounds(op: Function) -> EntryBounds:
    """In fixed point, whose errors are far below a step of the result."""
    source, result = op.source.params, op.result.params
    return nearest(lambda x: np.where(x <= 0, np.inf, 1 / np.sqrt(x)), source, result, 0.02)


OPERATORS = (
    function(
        elementwise("RSQRT", relax="rsqrt", relay="rsqrt", real=lambda x: 1 / np.sqrt(x)),
        Widths(
            table=_table,
            bounds=_bounds,
            wide=sampled(_inverse_root),
            wide_reference=sampled_reference(_inverse_root),
            dtypes=SIGNED,
        ),
    ),
)
