"""FULLY_CONNECTED: a dense layer."""

from tvm_serenity.operators.record import Operator, no_scratch

OPERATORS = (Operator(kinds=("FULLY_CONNECTED",), scratch=no_scratch),)
