"""HARD_SWISH: ``x relu6(x + 3) / 6``, in the fixed point of ``reference_ops::HardSwish``."""

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.functions import Function, Widths, function
from tvm_serenity.operators.record import elementwise
from tvm_serenity.operators.scene import EIGHT, Array
from tvm_serenity.quantize import tables


def _table(op: Function) -> Array:
    if np.float32(op.source.scale) / np.float32(128) > np.float32(op.result.scale):
        raise UnsupportedError("HARD_SWISH to a scale of less than 1/128 of its input's")
    return tables.hard_swish(op.source.params, op.result.params)


OPERATORS = (function(elementwise("HARD_SWISH", "HardSwish"), Widths(table=_table, dtypes=EIGHT)),)
