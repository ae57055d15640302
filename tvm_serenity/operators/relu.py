"""RELU, RELU6, RELU_N1_TO_1 and RELU_0_TO_1: values between two limits."""

from tvm_serenity.operators.record import elementwise

OPERATORS = (
    elementwise("RELU", "RELU6", "Relu", cheap=True, free=True),
    elementwise("RELU_N1_TO_1", "RELU_0_TO_1", "Clip", cheap=True),
)
