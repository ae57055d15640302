"""Functions that are known as operators on elements and nothing else.

LiteRT has none of them quantised.
"""

from dataclasses import replace

from tvm_serenity.operators.record import Operator, elementwise

OPERATORS = (
    replace(elementwise("CEIL", "COS", "FLOOR", "POW", "ROUND", "SIN"), float_only=True),
    elementwise("SIGN", "SQUARE"),
    Operator(kinds=("ATAN2",), float_only=True),
    elementwise("LOGICAL_AND", "LOGICAL_NOT", "LOGICAL_OR"),
    elementwise("Ceil", "Cos", "Floor", "Pow", "Round", "Sign", "Sin", "Tan"),
    elementwise("And", "Not", "Or", "Xor"),
    elementwise(
        "BatchNormalization", "Celu", "Erf", "HardSigmoid", "Mean", "Mish", "Reciprocal", "Selu"
    ),
    elementwise("Softplus", "Softsign", "ThresholdedRelu"),
)
