"""SLICE and STRIDED_SLICE: part of a tensor, by indices that are operands."""

from collections.abc import Sequence

from tvm_serenity.operators.extents import Extents
from tvm_serenity.operators.parts import (
    IntegerMeaning,
    MemoryUse,
    PlainMeaning,
    ShapeMeaning,
    Storage,
)
from tvm_serenity.operators.record import Operator, no_scratch
from tvm_serenity.operators.scene import Array, OptionsTable, Shape

_BEGIN, _END, _ELLIPSIS, _NEW_AXIS, _SHRINK = range(5)
"""Option fields of STRIDED_SLICE's masks, with a bit per axis."""


def _shape(seen: Extents) -> Shape | None:
    """Return the requested extents; -1 takes the rest of an axis."""
    begin, size = seen.value(1), seen.value(2)
    if begin is None or size is None or not len(begin) == len(size) == len(seen.shapes[0]):
        return None
    ranges = zip(seen.shapes[0], begin, size, strict=True)
    return tuple(max(extent - b, 0) if s == -1 else s for extent, b, s in ranges)


def _cut(values: Sequence[Array], _options: OptionsTable) -> Array:
    source, begin, size = values
    pairs = zip(begin.reshape(-1).tolist(), size.reshape(-1).tolist(), strict=True)
    return source[tuple(slice(b, None if count < 0 else b + count) for b, count in pairs)]


def _strided(values: Sequence[Array], options: OptionsTable) -> Array:
    if options.i32(_ELLIPSIS) or options.i32(_NEW_AXIS):
        raise ValueError("an ellipsis, or a new axis")

    def index(axis: int, begin: int, end: int, step: int) -> int | slice:
        said = [bool(options.i32(mask) >> axis & 1) for mask in (_BEGIN, _END, _SHRINK)]
        if said[2]:
            return begin
        return slice(None if said[0] else begin, None if said[1] else end, step)

    source, *ranges = values
    axes = zip(*(r.reshape(-1).tolist() for r in ranges), strict=True)
    found: Array = source[tuple(index(axis, *of) for axis, of in enumerate(axes))]
    return found


OPERATORS = (
    Operator(
        kinds=("SLICE",),
        shapes=ShapeMeaning(result=_shape, by_turn=True),
        numbers=PlainMeaning(known=_cut),
        integers=IntegerMeaning(moves=True),
    ),
    Operator(
        kinds=("STRIDED_SLICE",),
        relax=("strided_slice",),
        storage=Storage(use=MemoryUse.PART, scratch=no_scratch),
        numbers=PlainMeaning(known=_strided),
        integers=IntegerMeaning(moves=True),
    ),
)
