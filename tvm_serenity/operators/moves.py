"""Operators that move elements and change none."""

from tvm_serenity.operators.record import Operator, no_scratch

OPERATORS = (Operator(kinds=("STRIDED_SLICE",), scratch=no_scratch),)
