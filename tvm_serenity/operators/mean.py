"""MEAN: the mean of elements along axes."""

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.needs import Need, everything
from tvm_serenity.operators.record import Operator, Seen

_AXES = 1


def _by_rows(op: Seen) -> tuple[Need, ...]:
    if not {1, 2} <= {axis % 4 for axis in op.constant(_AXES)}:
        raise UnsupportedError("MEAN is not computed row by row")
    return (everything(op.height, op.sources[0]),)


OPERATORS = (Operator(kinds=("MEAN",), by_rows=_by_rows, sums_rows=True),)
