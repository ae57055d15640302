"""LOG: the natural logarithm; what has none is the least value of the result."""

from collections.abc import Callable

import numpy as np

from tvm_serenity.operators.functions import Function, Widths, function, sampled, sampled_reference
from tvm_serenity.operators.record import elementwise
from tvm_serenity.operators.scene import SIGNED, Array
from tvm_serenity.operators.table_bounds import EntryBounds, nearest
from tvm_serenity.quantize import lookups
from tvm_serenity.quantize.params import Affine


def _log(_source: Affine, result: Affine) -> Callable[[Array], Array]:
    low = result.limits[0]
    return lookups.log_or((low - result.zero_point) * float(np.float32(result.scale)))


def _table(op: Function) -> Array:
    source, result = op.source.params, op.result.params
    return lookups.lookup8(_log(source, result), source, result)


def _bounds(op: Function) -> EntryBounds:
    source, result = op.source.params, op.result.params
    least = (result.limits[0] - result.zero_point) * result.scale
    return nearest(lambda x: np.where(x <= 0, least, np.log(x)), source, result)


OPERATORS = (
    function(
        elementwise("LOG", "Log", relax="log", relay="log", real=np.log),
        Widths(
            table=_table,
            bounds=_bounds,
            wide=sampled(_log),
            wide_reference=sampled_reference(_log),
            dtypes=SIGNED,
        ),
    ),
)
