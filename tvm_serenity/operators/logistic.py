"""LOGISTIC and TANH: sigmoids, in LiteRT's table or between its samples."""

from tvm_serenity.operators.record import elementwise

OPERATORS = (
    elementwise("LOGISTIC", "TANH", free=True),
    elementwise("Sigmoid", "Tanh"),
)
