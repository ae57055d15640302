"""RSQRT: one over the square root; in fixed point for 8 bits, between samples for 16."""

from collections.abc import Callable

import numpy as np

from tvm_serenity.operators.functions import Function, Widths, function, sampled, sampled_reference
from tvm_serenity.operators.record import elementwise
from tvm_serenity.operators.scene import SIGNED, Array
from tvm_serenity.quantize import lookups
from tvm_serenity.quantize.params import Affine


def _inverse_root(_source: Affine, result: Affine) -> Callable[[Array], Array]:
    return lookups.rsqrt_or(32767 * float(np.float32(result.scale)))


def _table(op: Function) -> Array:
    return lookups.inverse_root(op.source.params, op.result.params)


OPERATORS = (
    function(
        elementwise("RSQRT", relax="rsqrt", relay="rsqrt", real=lambda x: 1 / np.sqrt(x)),
        Widths(
            table=_table,
            wide=sampled(_inverse_root),
            wide_reference=sampled_reference(_inverse_root),
            dtypes=SIGNED,
        ),
    ),
)
