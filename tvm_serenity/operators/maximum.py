"""MAXIMUM and MINIMUM: the larger or the smaller stored value of two, whatever their scales."""

import numpy as np

from tvm_serenity.operators.record import elementwise
from tvm_serenity.operators.scene import ALL
from tvm_serenity.operators.stored import on_stored

OPERATORS = (
    on_stored(
        elementwise("MAXIMUM", "MINIMUM", "Max", "Min"),
        {"MAXIMUM": "maximum", "MINIMUM": "minimum"},
        {"MAXIMUM": np.maximum, "MINIMUM": np.minimum},
        ALL,
    ),
)
