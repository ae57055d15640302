"""Functions that are known as operators on elements and nothing else; LiteRT has none quantised."""

from tvm_serenity.operators.record import elementwise

OPERATORS = (
    elementwise("CEIL", "COS", "FLOOR", "POW", "ROUND", "SIGN", "SIN", "SQUARE"),
    elementwise("LOGICAL_AND", "LOGICAL_NOT", "LOGICAL_OR"),
    elementwise("Ceil", "Cos", "Floor", "Pow", "Round", "Sign", "Sin", "Tan"),
    elementwise("And", "Not", "Or", "Xor"),
    elementwise(
        "BatchNormalization", "Celu", "Erf", "HardSigmoid", "Mean", "Mish", "Reciprocal", "Selu"
    ),
    elementwise("Softplus", "Softsign", "ThresholdedRelu"),
)
