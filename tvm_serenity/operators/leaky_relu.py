"""LEAKY_RELU: ``x`` where it is positive, ``alpha x`` elsewhere."""

from tvm_serenity.operators.record import elementwise

OPERATORS = (elementwise("LEAKY_RELU", "LeakyRelu"),)
