"""FLOOR_DIV and FLOOR_MOD: stored values divided and rounded down, and what that leaves."""

import numpy as np

from tvm_serenity.operators.record import elementwise
from tvm_serenity.operators.scene import SIGNED
from tvm_serenity.operators.stored import on_stored

OPERATORS = (
    on_stored(
        elementwise("FLOOR_DIV", "FLOOR_MOD", "Mod"),
        {"FLOOR_DIV": "floor_divide", "FLOOR_MOD": "floor_mod"},
        {"FLOOR_DIV": np.floor_divide, "FLOOR_MOD": np.mod},
        SIGNED,
    ),
)
