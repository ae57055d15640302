"""Functions that are known as operators on elements and little else.

LiteRT has none of them quantised.
"""

from collections.abc import Sequence
from dataclasses import replace

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.plain import FLOATS
from tvm_serenity.operators.record import Operator, elementwise
from tvm_serenity.operators.scene import Calls, Expr, Scene


def _power(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    if scene.dtype(0) not in FLOATS:
        raise UnsupportedError(f"POW of {scene.dtype(0)}: only floats have it here")
    return calls.apply("power", *values)


def _square(_scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    return calls.apply("multiply", values[0], values[0])


OPERATORS = (
    replace(elementwise("CEIL", "COS", "FLOOR", "ROUND", "SIN"), float_only=True),
    replace(elementwise("POW"), float_only=True, plain=_power),
    elementwise("SIGN"),
    replace(elementwise("SQUARE"), plain=_square),
    Operator(kinds=("ATAN2",), float_only=True),
    elementwise("LOGICAL_AND", "LOGICAL_NOT", "LOGICAL_OR"),
    elementwise("Ceil", "Cos", "Floor", "Pow", "Round", "Sign", "Sin", "Tan"),
    elementwise("And", "Not", "Or", "Xor"),
    elementwise(
        "BatchNormalization", "Celu", "Erf", "HardSigmoid", "Mean", "Mish", "Reciprocal", "Selu"
    ),
    elementwise("Softplus", "Softsign", "ThresholdedRelu"),
)
