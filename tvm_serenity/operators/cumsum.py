"""CUMSUM: running sums along an axis; from the end where they are reversed."""

from collections.abc import Sequence

from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Calls, Expr, Scene

_AXIS = 1
_EXCLUSIVE, _REVERSE = 0, 1


def _plain(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    at = scene.constant(_AXIS)[0] % len(scene.shape(0))
    exclusive, value = bool(scene.options.u8(_EXCLUSIVE)), values[0]
    if not scene.options.u8(_REVERSE):
        return calls.apply("cumsum", value, at, exclusive=exclusive)
    turned = calls.apply("cumsum", calls.apply("flip", value, at), at, exclusive=exclusive)
    return calls.apply("flip", turned, at)


OPERATORS = (Operator(kinds=("CUMSUM",), plain=_plain),)
