"""SQUARED_DIFFERENCE: the square of what two tensors differ by."""

from tvm_serenity.operators.record import elementwise

OPERATORS = (elementwise("SQUARED_DIFFERENCE"),)
