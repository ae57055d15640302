"""SELECT and SELECT_V2: elements of one tensor or of another."""

from tvm_serenity.operators.record import Operator, elementwise

OPERATORS = (
    elementwise("SELECT_V2", "Where"),
    Operator(kinds=("SELECT",)),
)
