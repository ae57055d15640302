"""CONCATENATION: tensors put together along an axis."""

from tvm_serenity.operators.needs import Need, rowwise, stacked
from tvm_serenity.operators.record import Memory, Operator, Seen, no_scratch

_AXIS = 0


def _by_rows(op: Seen) -> tuple[Need, ...]:
    if op.options.i32(_AXIS) % 4 != 1:
        return tuple(rowwise(op.height, source) for source in op.sources)
    return stacked(op.height, op.sources)


OPERATORS = (
    Operator(kinds=("CONCATENATION",), memory=Memory.CONCAT, by_rows=_by_rows, scratch=no_scratch),
    Operator(kinds=("STABLEHLO_CONCATENATE", "Concat"), memory=Memory.CONCAT),
)
