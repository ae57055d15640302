"""MAXIMUM and MINIMUM: the larger or the smaller of two elements."""

from tvm_serenity.operators.record import elementwise

OPERATORS = (elementwise("MAXIMUM", "MINIMUM", "Max", "Min"),)
