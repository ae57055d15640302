"""FLOOR_DIV and FLOOR_MOD: quotients rounded down, and what they leave."""

from tvm_serenity.operators.record import elementwise

OPERATORS = (elementwise("FLOOR_DIV", "FLOOR_MOD", "Mod"),)
