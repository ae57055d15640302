"""NEG: values with the other sign."""

from tvm_serenity.operators.record import elementwise

OPERATORS = (elementwise("NEG", "Neg"),)
