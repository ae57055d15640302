"""MUL: the product of two tensors."""

from tvm_serenity.operators.record import elementwise

OPERATORS = (elementwise("MUL", "Mul", free=True),)
