"""RESIZE_NEAREST_NEIGHBOR: an image in another size, its pixels copied."""

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.needs import Need, nearest
from tvm_serenity.operators.record import Operator, Seen


def _by_rows(op: Seen) -> tuple[Need, ...]:
    if op.height % op.sources[0]:
        raise UnsupportedError(f"{op.kind} is not computed row by row")
    return (nearest(op.height, op.sources[0]),)


OPERATORS = (Operator(kinds=("RESIZE_NEAREST_NEIGHBOR",), by_rows=_by_rows, moves=True),)
