"""LOG: the natural logarithm; undefined results are the least value of the type."""

from collections.abc import Callable

import numpy as np

from tvm_serenity.operators.functions import Function, Sampled, Widths, function
from tvm_serenity.operators.record import elementwise
from tvm_serenity.operators.scene import SIGNED, Array
from tvm_serenity.operators.table_bounds import EntryBounds, Real, nearest
from tvm_serenity.quantize import lookups


def _log(op: Function) -> Callable[[Array], Array]:
    result = op.result.params
    low = result.limits[0]
    return lookups.log_or((low - result.zero_point) * float(np.float32(result.scale)))


def _exact(op: Function) -> Real:
    result = op.result.params
    least = (result.limits[0] - result.zero_point) * result.scale
    return lambda x: np.where(x <= 0, least, np.log(x))


def _table(op: Function) -> Array:
    return lookups.lookup8(_log(op), op.source.params, op.result.params)


def _bounds(op: Function) -> EntryBounds:
    return nearest(_exact(op), op.source.params, op.result.params)


_SAMPLED = Sampled("LOG", _log, _exact)
OPERATORS = (
    function(
        elementwise("LOG", "Log", relax="log", relay="log", real=np.log),
        Widths(
            table=_table,
            bounds=_bounds,
            wide=_SAMPLED.wide,
            wide_reference=_SAMPLED.reference,
            dtypes=SIGNED,
        ),
    ),
)
