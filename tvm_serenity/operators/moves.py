"""Operators that move elements, or say where they are, and change none."""

from tvm_serenity.operators.record import Operator, no_scratch

_MOVES = """
    BROADCAST_TO DEPTH_TO_SPACE FILL PACK REVERSE_V2 SHAPE SLICE SPACE_TO_DEPTH TILE TOPK_V2
    TRANSPOSE UNPACK
"""

OPERATORS = (
    Operator(kinds=tuple(_MOVES.split()), moves=True),
    Operator(kinds=("STRIDED_SLICE",), moves=True, scratch=no_scratch),
)
