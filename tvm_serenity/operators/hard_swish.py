"""HARD_SWISH: ``x relu6(x + 3) / 6``, in the fixed point of ``reference_ops::HardSwish``."""

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.functions import Function, Widths, function
from tvm_serenity.operators.record import elementwise
from tvm_serenity.operators.scene import EIGHT, Array
from tvm_serenity.operators.table_bounds import EntryBounds
from tvm_serenity.quantize import tables
from tvm_serenity.quantize.exact import hard_swish
from tvm_serenity.quantize.fixed import multiplier
from tvm_serenity.quantize.params import Affine


def _table(op: Function) -> Array:
    if np.float32(op.source.scale) / np.float32(128) > np.float32(op.result.scale):
        raise UnsupportedError(
            "HARD_SWISH needs a result scale of at least 1/128 of its input's scale "
            f"{op.source.scale:g}, not {op.result.scale:g}"
        )
    return tables.hard_swish(op.source.params, op.result.params)


def _bounds(op: Function) -> EntryBounds:
    source, result = op.source.params, op.result.params
    hires = np.float32(1 / 128) * np.float32(source.scale)
    pair = multiplier(
        (float(hires / np.float32(result.scale)), float(hires / np.float32(3 / 32768)))
    )
    output, gate = zip(pair.value, pair.shift, strict=True)
    found = [hard_swish(x - source.zero_point, output, gate) for x in _stored(source)]
    made = np.array(found, np.int64) + result.zero_point
    return EntryBounds(made, made)


def _stored(source: Affine) -> range:
    low, high = source.limits
    return range(low, high + 1)


OPERATORS = (
    function(
        elementwise("HARD_SWISH", "HardSwish"), Widths(table=_table, bounds=_bounds, dtypes=EIGHT)
    ),
)
