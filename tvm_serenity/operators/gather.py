"""GATHER and GATHER_ND: slices of a tensor at indices."""

from collections.abc import Sequence

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.parts import IntegerMeaning, PlainMeaning
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Array, Calls, Expr, OptionsTable, Scene

_INDICES = 1
_AXIS, _BATCH = 0, 1


def _along_an_axis(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    shape, picked = scene.shape(0), scene.shape(_INDICES)
    axis, batch = scene.options.i32(_AXIS) % len(shape), scene.options.i32(_BATCH)
    batch = batch + len(picked) if batch < 0 else batch
    where = _checked(scene, values[_INDICES], [shape[axis]])
    if not batch:
        return calls.apply("take", values[0], where, axis, mode="clip")
    lead, outer, inner = (
        int(np.prod(p)) for p in (shape[:batch], shape[batch:axis], shape[axis + 1 :])
    )
    extent, count = shape[axis], int(np.prod(picked[batch:]))
    split = calls.apply("reshape", values[0], (lead, outer, extent, inner))
    flat = calls.apply("permute_dims", split, [0, 2, 1, 3])
    flat = calls.apply("reshape", flat, (lead * extent, outer, inner))
    first = np.arange(lead, dtype=np.int64).reshape(-1, 1) * extent
    wide = calls.apply("reshape", calls.apply("astype", where, "int64"), (lead, count))
    rows = calls.apply("add", wide, first)
    taken = calls.apply("take", flat, rows, 0, mode="clip")
    taken = calls.apply("permute_dims", taken, [0, 2, 1, 3])
    return calls.apply("reshape", taken, [*shape[:axis], *picked[batch:], *shape[axis + 1 :]])


def _by_several_axes(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    shape, depth = scene.shape(0), scene.shape(_INDICES)[-1]
    where = _checked(scene, values[_INDICES], shape[:depth])
    steps = np.cumprod([1, *shape[1:depth][::-1]])[::-1].astype(np.int64)
    offsets = calls.apply("multiply", calls.apply("astype", where, "int64"), steps)
    rows = calls.apply("sum", offsets, axis=[-1])
    flat = calls.apply("reshape", values[0], [int(np.prod(shape[:depth])), *shape[depth:]])
    return calls.apply("take", flat, rows, 0, mode="clip")


def _checked(scene: Scene, value: Expr, extents: Sequence[int]) -> Expr:
    """Return the indices; refuse constant indices that are out of range."""
    given = scene.operands[_INDICES]
    if given is None or given.values is None:
        return value
    held = np.asarray(given.values, np.int64)
    if ((held < 0) | (held >= np.asarray(extents))).any():
        raise UnsupportedError(
            f"its indices are out of range for the indexed axes of extents {list(extents)}"
        )
    return held


def _known(values: Sequence[Array], options: OptionsTable) -> Array:
    """Return the gathered values.

    Raises ``IndexError`` for an index outside of its axis; numpy would count negative ones from the
    end.
    """
    if options.i32(_BATCH) or (values[_INDICES] < 0).any():
        raise IndexError("batches, or a negative index")
    return np.take(values[0], values[_INDICES], options.i32(_AXIS))


OPERATORS = (
    Operator(
        kinds=("GATHER",),
        relax=("take",),
        numbers=PlainMeaning(form=_along_an_axis, known=_known),
        integers=IntegerMeaning(moves=True),
    ),
    Operator(
        kinds=("GATHER_ND",),
        numbers=PlainMeaning(form=_by_several_axes),
        integers=IntegerMeaning(moves=True),
    ),
)
