"""LOG: the natural logarithm."""

from tvm_serenity.operators.record import elementwise

OPERATORS = (elementwise("LOG", "Log"),)
