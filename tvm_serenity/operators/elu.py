"""ELU: ``x`` if it is positive, otherwise ``exp(x) - 1``."""

import numpy as np

from tvm_serenity.operators.functions import Widths, function, nearest_to, real
from tvm_serenity.operators.record import elementwise
from tvm_serenity.quantize import lookups

OPERATORS = (
    function(
        elementwise("ELU", "Elu"),
        Widths(
            table=real(lookups.elu),
            bounds=nearest_to(lambda x: np.where(x < 0, np.expm1(x), x)),
            dtypes=("int8",),
        ),
    ),
)
