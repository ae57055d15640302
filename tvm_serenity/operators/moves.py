"""Operators that move elements, or say where they are, and change none."""

from tvm_serenity.operators.record import MemoryUse, Operator, no_scratch

_MOVES = """
    DEPTH_TO_SPACE FILL PACK SHAPE SLICE SPACE_TO_DEPTH UNPACK
"""


OPERATORS = (
    Operator(kinds=tuple(_MOVES.split()), moves=True),
    Operator(kinds=("TOPK_V2",), relax=("topk",), moves=True),
    Operator(kinds=("BROADCAST_TO",), relax=("broadcast_to",), moves=True),
    Operator(kinds=("REVERSE_V2",), relax=("flip",), moves=True),
    Operator(kinds=("TILE",), relax=("repeat", "tile"), moves=True),
    Operator(
        kinds=("STRIDED_SLICE",),
        relax=("strided_slice",),
        memory=MemoryUse.PART,
        moves=True,
        scratch=no_scratch,
    ),
    Operator(kinds=("TRANSPOSE",), relax=("permute_dims",), memory=MemoryUse.TURNED, moves=True),
)
