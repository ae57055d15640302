"""ABS: values without their sign."""

from tvm_serenity.operators.record import elementwise

OPERATORS = (elementwise("ABS", "Abs"),)
