"""Operators that move elements, or say where they are, and change none."""

from collections.abc import Sequence

from tvm_serenity.operators.record import MemoryUse, Operator, no_scratch
from tvm_serenity.operators.scene import Calls, Expr, Scene

_MOVES = """
    DEPTH_TO_SPACE FILL PACK SHAPE SLICE SPACE_TO_DEPTH UNPACK
"""


def _largest(scene: Scene, values: Sequence[Expr], calls: Calls) -> list[Expr] | None:
    """TVM's own, which sorts no integers of 16 bits: as 32 bits."""
    if scene.dtype(0) != "int16":
        return None
    wide = calls.apply("astype", values[0], "int32")
    found = calls.apply("topk", wide, scene.constant(1)[0])
    return [calls.apply("astype", found[0], "int16"), found[1]]


OPERATORS = (
    Operator(kinds=tuple(_MOVES.split()), moves=True),
    Operator(kinds=("TOPK_V2",), plain=_largest, moves=True),
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
