"""L2_POOL_2D: the root mean square of each window."""

from tvm_serenity.operators.parts import Rows
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.windows import pooled_by_rows

OPERATORS = (Operator(kinds=("L2_POOL_2D",), rows=Rows(needs=pooled_by_rows)),)
