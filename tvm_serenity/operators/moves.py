"""Operators that move elements, or say where they are, and change none."""

from tvm_serenity.operators.parts import Integers, MemoryUse, Storage
from tvm_serenity.operators.record import Operator, no_scratch

_MOVES = """
    DEPTH_TO_SPACE FILL PACK SHAPE SLICE SPACE_TO_DEPTH UNPACK
"""


OPERATORS = (
    Operator(kinds=tuple(_MOVES.split()), integers=Integers(moves=True)),
    Operator(kinds=("TOPK_V2",), relax=("topk",), integers=Integers(moves=True)),
    Operator(kinds=("BROADCAST_TO",), relax=("broadcast_to",), integers=Integers(moves=True)),
    Operator(kinds=("REVERSE_V2",), relax=("flip",), integers=Integers(moves=True)),
    Operator(kinds=("TILE",), relax=("repeat", "tile"), integers=Integers(moves=True)),
    Operator(
        kinds=("STRIDED_SLICE",),
        relax=("strided_slice",),
        storage=Storage(use=MemoryUse.PART, scratch=no_scratch),
        integers=Integers(moves=True),
    ),
    Operator(
        kinds=("TRANSPOSE",),
        relax=("permute_dims",),
        storage=Storage(use=MemoryUse.TURNED),
        integers=Integers(moves=True),
    ),
)
