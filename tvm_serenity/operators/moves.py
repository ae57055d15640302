"""Operators that move elements unchanged, or return their positions."""

from collections.abc import Sequence

import numpy as np

from tvm_serenity.operators.extents import Extents
from tvm_serenity.operators.parts import (
    IntegerMeaning,
    MemoryUse,
    PlainMeaning,
    ShapeMeaning,
    Storage,
)
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Array, OptionsTable, Shape

_MOVES = """
    DEPTH_TO_SPACE FILL SHAPE SPACE_TO_DEPTH UNPACK
"""
_AXIS = 1
"""The option field of PACK's axis."""


def _packed(values: Sequence[Array], options: OptionsTable) -> Array:
    return np.stack(list(values), options.i32(_AXIS))


def _turned(seen: Extents) -> Shape | None:
    order = seen.value(1)
    return None if order is None else tuple(seen.shapes[0][axis] for axis in order)


OPERATORS = (
    Operator(kinds=tuple(_MOVES.split()), integers=IntegerMeaning(moves=True)),
    Operator(
        kinds=("PACK",), numbers=PlainMeaning(known=_packed), integers=IntegerMeaning(moves=True)
    ),
    Operator(kinds=("TOPK_V2",), relax=("topk",), integers=IntegerMeaning(moves=True)),
    Operator(kinds=("BROADCAST_TO",), relax=("broadcast_to",), integers=IntegerMeaning(moves=True)),
    Operator(kinds=("REVERSE_V2",), relax=("flip",), integers=IntegerMeaning(moves=True)),
    Operator(kinds=("TILE",), relax=("repeat", "tile"), integers=IntegerMeaning(moves=True)),
    Operator(
        kinds=("TRANSPOSE",),
        shapes=ShapeMeaning(result=_turned),
        relax=("permute_dims",),
        storage=Storage(use=MemoryUse.TURNED),
        integers=IntegerMeaning(moves=True),
    ),
)
