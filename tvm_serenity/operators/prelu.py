"""PRELU: ``x`` where it is positive, a slope of its own times ``x`` elsewhere."""

from tvm_serenity.operators.record import elementwise

OPERATORS = (elementwise("PRELU", "PRelu"),)
