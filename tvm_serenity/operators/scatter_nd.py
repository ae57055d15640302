"""SCATTER_ND: slices added at indices to a tensor of zeros.

Stored values are added unchanged, and empty places are the stored value 0, whatever the zero point.
"""

from collections.abc import Sequence

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.parts import IntegerMeaning, PlainMeaning
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Array, Calls, Expr, Scene

_INDICES, _UPDATES = 0, 1
_MOST_TERMS = 64


def _plain(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    """Return the tensor: each element is the sum of the slices at its index, or zero."""
    shape, dtype = scene.results[0].shape, scene.dtype(_UPDATES)
    places = _places(scene, shape)
    depth = scene.shape(_INDICES)[-1]
    lead, rest = int(np.prod(shape[:depth])), shape[depth:]
    turns = _turns(places, lead)
    updates = calls.apply("reshape", values[_UPDATES], (len(places), *rest))
    zeros = calls.apply("zeros", (1, *rest), dtype)
    held = calls.apply("concat", [updates, zeros], 0)
    made = calls.apply("take", held, turns[0], 0, mode="clip")
    for turn in turns[1:]:
        made = calls.apply("add", made, calls.apply("take", held, turn, 0, mode="clip"))
    return calls.apply("reshape", made, shape)


def _places(scene: Scene, shape: Sequence[int]) -> Array:
    """Return the flat row of the result that each slice goes to."""
    given = scene.operands[_INDICES]
    if given is None or given.values is None:
        raise UnsupportedError("its indices are computed at run time; use constants")
    held = np.asarray(given.values, np.int64)
    extents = np.asarray(shape[: held.shape[-1]], np.int64)
    if ((held < 0) | (held >= extents)).any():
        raise UnsupportedError("an index is outside of its axis")
    steps = np.cumprod([1, *extents[1:][::-1]])[::-1].astype(np.int64)
    return np.asarray((held * steps).sum(-1).reshape(-1))


def _turns(places: Array, lead: int) -> list[Array]:
    """Return, for each row, the numbers of its slices: arrays of first slices, second slices, etc.

    Rows without a further slice get the number of slices.
    """
    turns: list[Array] = [np.full(lead, len(places), np.int64)]
    for slot, place in enumerate(places):
        turn = next((t for t in turns if t[place] == len(places)), None)
        if turn is None:
            turn = np.full(lead, len(places), np.int64)
            turns.append(turn)
        turn[place] = slot
    if len(turns) > _MOST_TERMS:
        raise UnsupportedError(f"more than {_MOST_TERMS} slices at one index are not supported")
    return turns


OPERATORS = (
    Operator(
        kinds=("SCATTER_ND",),
        numbers=PlainMeaning(form=_plain),
        integers=IntegerMeaning(moves=True),
    ),
)
