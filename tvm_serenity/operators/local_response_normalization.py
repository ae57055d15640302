"""LOCAL_RESPONSE_NORMALIZATION: refused, as LiteRT's own kernels differ."""

from collections.abc import Sequence

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Calls, Expr, Scene


def _plain(_scene: Scene, _values: Sequence[Expr], _calls: Calls) -> Expr:
    raise UnsupportedError("LiteRT's reference and optimised kernels sum over different channels")


OPERATORS = (Operator(kinds=("LOCAL_RESPONSE_NORMALIZATION",), plain=_plain),)
