"""GELU: ``x`` times the normal distribution's function, or its approximation by tanh."""

from tvm_serenity.operators.record import elementwise

OPERATORS = (elementwise("GELU", "Gelu"),)
