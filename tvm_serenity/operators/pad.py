"""PAD and PADV2: a tensor within a border of one value."""

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.needs import Need, shifted
from tvm_serenity.operators.record import Operator, Seen, no_scratch

_AMOUNTS = 1


def _by_rows(op: Seen) -> tuple[Need, ...]:
    amounts = op.constant(_AMOUNTS)
    if len(amounts) != 8:
        raise UnsupportedError(f"{op.kind} is not computed row by row")
    return (shifted(op.height, op.sources[0], amounts[2]),)


OPERATORS = (
    Operator(kinds=("PAD",), by_rows=_by_rows, pads=True, moves=True, scratch=no_scratch),
    Operator(kinds=("PADV2",), by_rows=_by_rows, moves=True),
)
