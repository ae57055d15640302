"""EXP: the exponential function."""

import numpy as np

from tvm_serenity.operators.functions import Sampled, Widths, function, nearest_to, real
from tvm_serenity.operators.record import elementwise
from tvm_serenity.operators.scene import SIGNED
from tvm_serenity.quantize import lookups

_SAMPLED = Sampled("EXP", lambda _op: lookups.exp, lambda _op: np.exp)
OPERATORS = (
    function(
        elementwise("EXP", "Exp", relax="exp", relay="exp", real=np.exp),
        Widths(
            table=real(lookups.exp),
            bounds=nearest_to(np.exp),
            wide=_SAMPLED.wide,
            wide_reference=_SAMPLED.reference,
            dtypes=SIGNED,
        ),
    ),
)
