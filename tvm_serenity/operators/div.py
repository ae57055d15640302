"""DIV: the quotient of two tensors."""

from tvm_serenity.operators.record import elementwise

OPERATORS = (elementwise("DIV", "Div"),)
