"""RESIZE_NEAREST_NEIGHBOR: an image resized by copying pixels."""

from collections.abc import Sequence

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.needs import Need, Seen, nearest
from tvm_serenity.operators.parts import IntegerMeaning, PlainMeaning, Rows
from tvm_serenity.operators.picked import picked
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Array, Calls, Expr, Scene

_SIZE = 1
_ALIGN_CORNERS, _HALF_PIXEL = 0, 1


def _by_rows(op: Seen) -> tuple[Need, ...]:
    if op.height % op.sources[0]:
        raise UnsupportedError(
            f"{op.kind} is computed row by row only for heights that are multiples of its input's"
        )
    return (nearest(op.height, op.sources[0]),)


def _plain(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr | None:
    """Return a gather by indices, or None if TVM's own kernel computes the same."""
    shape, wanted = scene.shape(0), scene.constant(_SIZE)
    corners = bool(scene.options.u8(_ALIGN_CORNERS))
    half = bool(scene.options.u8(_HALF_PIXEL))
    multiples = all(new % old == 0 for old, new in zip(shape[1:3], wanted, strict=True))
    if multiples and not corners and not half:
        return None
    value = values[0]
    for axis, new in zip((1, 2), wanted, strict=True):
        order = copied(shape[axis], new, corners, half)
        value = picked(calls, value, order, axis, shape[axis])
    return value


def copied(old: int, new: int, corners: bool, half: bool) -> Array:
    """Return the source position of each result position, in LiteRT's 32-bit floats."""
    scale = np.float32(old) / np.float32(new)
    if corners and new > 1:
        scale = np.float32(old - 1) / np.float32(new - 1)
    offset = np.float32(0.5 if half else 0)
    at = (np.arange(new).astype(np.float32) + offset) * scale
    whole = np.trunc(at + np.float32(0.5)) if corners else np.floor(at)
    return np.asarray(np.clip(whole, 0, old - 1), np.int64)


OPERATORS = (
    Operator(
        kinds=("RESIZE_NEAREST_NEIGHBOR",),
        rows=Rows(needs=_by_rows),
        numbers=PlainMeaning(form=_plain),
        integers=IntegerMeaning(moves=True),
    ),
)
