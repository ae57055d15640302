"""Float functions that need only an elementwise record.

LiteRT has no quantised kernels for them.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.parts import Elements, IntegerMeaning, PlainMeaning
from tvm_serenity.operators.plain import FLOATS
from tvm_serenity.operators.record import Operator, elementwise
from tvm_serenity.operators.scene import Calls, Expr, Scene
from tvm_serenity.quantize import lookups


def _power(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    if scene.dtype(0) not in FLOATS:
        raise UnsupportedError(f"POW of {scene.dtype(0)} is not supported, only of floats")
    return calls.apply("power", *values)


def _square(_scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    return calls.apply("multiply", values[0], values[0])


def _rounding(name: str) -> Operator:
    facts = elementwise(name.upper(), name.capitalize(), relax=name, relay=name)
    return replace(facts, integers=IntegerMeaning(float_only=True))


_SHIFTS = "left_shift right_shift"
OPERATORS = (
    replace(
        elementwise("COS", "Cos", relax="cos", real=np.cos),
        integers=IntegerMeaning(float_only=True),
    ),
    replace(
        elementwise("SIN", "Sin", relax="sin", real=np.sin),
        integers=IntegerMeaning(float_only=True),
    ),
    replace(_rounding("ceil"), elements=Elements(real=np.ceil)),
    replace(_rounding("floor"), elements=Elements(real=np.floor)),
    replace(_rounding("round"), elements=Elements(real=np.rint)),
    replace(
        elementwise("POW", "Pow", relax="power", real=np.power),
        integers=IntegerMeaning(float_only=True),
        numbers=PlainMeaning(form=_power),
    ),
    elementwise("SIGN"),
    replace(
        elementwise("SQUARE", relax="square", real=np.square), numbers=PlainMeaning(form=_square)
    ),
    Operator(kinds=("ATAN2",), integers=IntegerMeaning(float_only=True)),
    elementwise("LOGICAL_AND", real=np.logical_and),
    elementwise("LOGICAL_NOT", real=np.logical_not),
    elementwise("LOGICAL_OR", real=np.logical_or),
    elementwise("Sign", relax="sign", real=np.sign),
    elementwise("Tan", relax="tan", real=np.tan),
    elementwise("BitShift", relax=_SHIFTS, relay=_SHIFTS),
    elementwise("Swish", relax="nn.silu", real=lambda x: x / (1 + np.exp(-x))),
    elementwise("Erf", relax="erf", real=lookups.erf),
    elementwise("And", "Not", "Or", "Xor"),
    elementwise("BatchNormalization", "Celu", "HardSigmoid", "Mean", "Mish", "Reciprocal", "Selu"),
    elementwise("Softplus", "Softsign", "ThresholdedRelu"),
)
