"""SPLIT and SPLIT_V: parts of a tensor along an axis; a copy where there is one part."""

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.needs import Need, rowwise
from tvm_serenity.operators.record import Memory, Operator, Seen, no_scratch


def _by_rows(op: Seen) -> tuple[Need, ...]:
    if op.outputs < 1 or op.sources != [op.height]:
        raise UnsupportedError("SPLIT is not computed row by row")
    return (rowwise(op.height, op.height),)


OPERATORS = (
    Operator(
        kinds=("SPLIT",), memory=Memory.COPY, by_rows=_by_rows, moves=True, scratch=no_scratch
    ),
    Operator(kinds=("SPLIT_V", "Split"), memory=Memory.COPY, moves=True),
)
