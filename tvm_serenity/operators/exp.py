"""EXP: the exponential function."""

import numpy as np

from tvm_serenity.operators.functions import (
    Widths,
    function,
    nearest_to,
    real,
    real_of,
    sampled,
    sampled_reference,
)
from tvm_serenity.operators.record import elementwise
from tvm_serenity.operators.scene import SIGNED
from tvm_serenity.quantize import lookups

OPERATORS = (
    function(
        elementwise("EXP", "Exp", relax="exp", relay="exp", real=np.exp),
        Widths(
            table=real(lookups.exp),
            bounds=nearest_to(np.exp),
            wide=sampled(real_of(lookups.exp)),
            wide_reference=sampled_reference(real_of(lookups.exp)),
            dtypes=SIGNED,
        ),
    ),
)
