"""RSQRT: one over the square root."""

from tvm_serenity.operators.record import elementwise

OPERATORS = (elementwise("RSQRT"),)
