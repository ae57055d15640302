"""SVDF: a filter over time whose memory is a state of the model."""

from tvm_serenity.operators.record import Operator

OPERATORS = (Operator(kinds=("SVDF",), moves=True),)
