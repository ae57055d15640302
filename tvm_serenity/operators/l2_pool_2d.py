"""L2_POOL_2D: the root of the mean square of each window."""

from tvm_serenity.operators.needs import Need, windowed
from tvm_serenity.operators.record import Operator, Seen

_FILTER_H = 4


def _by_rows(op: Seen) -> tuple[Need, ...]:
    return windowed(op, op.options.i32(_FILTER_H))


OPERATORS = (Operator(kinds=("L2_POOL_2D",), by_rows=_by_rows),)
