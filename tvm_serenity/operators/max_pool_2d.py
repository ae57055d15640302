"""MAX_POOL_2D: the largest value of each window."""

from tvm_serenity.operators.needs import Need, windowed
from tvm_serenity.operators.record import Operator, Seen, no_scratch

_FILTER_H = 4


def _by_rows(op: Seen) -> tuple[Need, ...]:
    return windowed(op, op.options.i32(_FILTER_H))


OPERATORS = (
    Operator(kinds=("MAX_POOL_2D",), by_rows=_by_rows, channel=3, scratch=no_scratch),
    Operator(kinds=("MaxPool",), channel=1),
)
