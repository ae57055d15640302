"""READ_VARIABLE and ASSIGN_VARIABLE: a resource variable, a state of the model.

VAR_HANDLE names a variable. ``tvm_serenity.frontends.relax._variables`` maps it to tensors and its
initial value. Stored values are moved unchanged.
"""

from collections.abc import Sequence

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.parts import IntegerMeaning, PlainMeaning
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Calls, Expr, Scene

_HANDLE, _VALUE = 0, 1


def _read(_scene: Scene, values: Sequence[Expr], _calls: Calls) -> Expr:
    return values[_HANDLE]


def _assign(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    held, given = ((scene.dtype(i), scene.shape(i)) for i in (_HANDLE, _VALUE))
    if held != given:
        said = (
            f"{given[0]}{list(given[1])} to a variable of {held[0]}{list(held[1])} is not supported"
        )
        raise UnsupportedError(f"{scene.kind} of {said}")
    return calls.leave(_HANDLE, values[_VALUE])


OPERATORS = (
    Operator(kinds=("VAR_HANDLE",), integers=IntegerMeaning(moves=True)),
    Operator(
        kinds=("READ_VARIABLE",),
        numbers=PlainMeaning(form=_read),
        integers=IntegerMeaning(moves=True),
    ),
    Operator(
        kinds=("ASSIGN_VARIABLE",),
        numbers=PlainMeaning(form=_assign),
        integers=IntegerMeaning(moves=True),
    ),
)
