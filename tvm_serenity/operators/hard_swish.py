"""HARD_SWISH: ``x relu6(x + 3) / 6``."""

from tvm_serenity.operators.record import elementwise

OPERATORS = (elementwise("HARD_SWISH", "HardSwish"),)
