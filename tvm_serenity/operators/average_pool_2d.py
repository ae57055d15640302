"""AVERAGE_POOL_2D: the mean of each window."""

from collections.abc import Sequence

from tvm_serenity.graph import Tensor
from tvm_serenity.operators.needs import Need, windowed
from tvm_serenity.operators.record import Operator, Seen
from tvm_serenity.operators.scene import Shape

_FILTER_H = 4


def _by_rows(op: Seen) -> tuple[Need, ...]:
    return windowed(op, op.options.i32(_FILTER_H))


def _scratch(shapes: Sequence[Shape | None], made: Tensor | None) -> int | None:
    """One int32 a channel."""
    if made is not None and made.dtype == "float32":
        return 0
    if made is None or made.dtype != "int8" or not shapes or shapes[0] is None:
        return None
    return 4 * shapes[0][-1]


OPERATORS = (
    Operator(
        kinds=("AVERAGE_POOL_2D",), by_rows=_by_rows, sums_rows=True, channel=3, scratch=_scratch
    ),
    Operator(kinds=("AveragePool",), channel=1),
)
