"""ELU: ``x`` where it is positive, ``exp(x) - 1`` elsewhere."""

from tvm_serenity.operators.record import elementwise

OPERATORS = (elementwise("ELU", "Elu"),)
