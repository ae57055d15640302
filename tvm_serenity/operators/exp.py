"""EXP: the exponential function."""

from tvm_serenity.operators.record import elementwise

OPERATORS = (elementwise("EXP", "Exp"),)
