"""SOFTMAX: exponentials over their sum, along the last axis."""

from tvm_serenity.operators.record import Operator, no_scratch

OPERATORS = (Operator(kinds=("SOFTMAX",), scratch=no_scratch),)
