"""ADD and SUB: the sum of two tensors, or their difference."""

from tvm_serenity.operators.record import elementwise

OPERATORS = (
    elementwise("ADD", "Add", adds=True, free=True),
    elementwise("SUB", "Sub", free=True),
    elementwise("Sum", adds=True),
)
