"""ELU: ``x`` where it is positive, ``exp(x) - 1`` elsewhere."""

from tvm_serenity.operators.functions import Widths, function, real
from tvm_serenity.operators.record import elementwise
from tvm_serenity.quantize import lookups

OPERATORS = (
    function(elementwise("ELU", "Elu"), Widths(table=real(lookups.elu), dtypes=("int8",))),
)
