"""Operators that run other subgraphs of the file, which may read and assign any variable."""

from tvm_serenity.operators.record import Operator

_KINDS = "CALL CALL_ONCE IF STABLEHLO_CASE STABLEHLO_WHILE WHILE"

OPERATORS = (Operator(kinds=tuple(_KINDS.split()), calls=True),)
