"""PAD and PADV2: a tensor with a border of one value."""

from collections.abc import Sequence

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.needs import Need, Seen, shifted
from tvm_serenity.operators.parts import IntegerMeaning, PlainMeaning, Rows, Storage
from tvm_serenity.operators.record import Operator, no_scratch
from tvm_serenity.operators.scene import Calls, Expr, Scene

_AMOUNTS, _VALUE = 1, 2
_EXACT = 2**53
"""The largest integer that float64, TVM's type for padding values, represents exactly."""


def _by_rows(op: Seen) -> tuple[Need, ...]:
    amounts = op.constant(_AMOUNTS)
    if op.axis is None or len(amounts) != 2 * len(op.shapes[0]):
        raise UnsupportedError(f"{op.kind} by amounts that are not in the file")
    return (shifted(op.height, op.sources[0], amounts[2 * op.axis]),)


def _far(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr | None:
    """Return padding by an integer above ``_EXACT``, by a selection; None for other values."""
    value, shape = scene.constant(_VALUE)[0], scene.shape(0)
    if scene.dtype(0) != "int64" or abs(value) <= _EXACT:
        return None
    amounts = scene.constant(_AMOUNTS)
    sides = list(zip(amounts[::2], amounts[1::2], strict=True))
    inside = np.pad(np.ones(shape, bool), sides)
    made = calls.apply("nn.pad", values[0], amounts, pad_value=0)
    return calls.apply("where", inside, made, np.asarray(value, np.int64))


OPERATORS = (
    Operator(
        kinds=("PAD",),
        rows=Rows(needs=_by_rows, pads=True),
        integers=IntegerMeaning(moves=True),
        storage=Storage(scratch=no_scratch),
    ),
    Operator(
        kinds=("PADV2",),
        rows=Rows(needs=_by_rows),
        numbers=PlainMeaning(form=_far),
        integers=IntegerMeaning(moves=True),
    ),
)
