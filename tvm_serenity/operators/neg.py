"""NEG: negated stored values, whatever their zero point."""

import numpy as np

from tvm_serenity.operators.record import elementwise
from tvm_serenity.operators.scene import SIGNED
from tvm_serenity.operators.stored import on_stored

OPERATORS = (
    on_stored(
        elementwise(
            "NEG", "Neg", relax="negative", relay="negative", real=np.negative, plain_cheap=True
        ),
        {"NEG": "negative"},
        {"NEG": np.negative},
        SIGNED,
    ),
)
