"""SQRT: square roots."""

from tvm_serenity.operators.record import elementwise

OPERATORS = (elementwise("SQRT", "Sqrt"),)
