"""LOCAL_RESPONSE_NORMALIZATION: refused, as LiteRT's own kernels differ."""

from tvm_serenity.operators.record import Operator

_WHY = "it is ambiguous: LiteRT's reference and optimised kernels sum over different channels"

OPERATORS = (Operator(kinds=("LOCAL_RESPONSE_NORMALIZATION",), refused=_WHY),)
