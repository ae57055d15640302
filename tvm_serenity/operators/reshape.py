"""RESHAPE, SQUEEZE, EXPAND_DIMS and others: the same bytes in another shape."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from tvm_serenity.operators.extents import Extents
from tvm_serenity.operators.parts import (
    IntegerMeaning,
    MemoryUse,
    PlainMeaning,
    ShapeMeaning,
    Storage,
)
from tvm_serenity.operators.record import Operator, no_scratch
from tvm_serenity.operators.scene import Array, Calls, Expr, OptionsTable, Scene, Shape

_AXES = 0
_EXTENTS = 0


def _squeezed(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    """Return a tensor without the named axes of extent 1, or without all of them."""
    shape = scene.shape(0)
    named = {axis % len(shape) for axis in scene.options.ints(_AXES)}
    gone = named or {i for i, extent in enumerate(shape) if extent == 1}
    return calls.apply("reshape", values[0], [e for i, e in enumerate(shape) if i not in gone])


def _expanded(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    """Return a tensor in its new shape; TVM's importer passes a superfluous argument."""
    return calls.apply("reshape", values[0], scene.results[0].shape)


def _reshaped(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr | None:
    """Return a tensor in the shape that the file states, or None if the shape is a constant."""
    given, (result,) = scene.operands, scene.results
    computed = len(given) > 1 and given[1] is not None and given[1].values is None
    if not computed or prod(scene.shape(0)) != prod(result.shape):
        return None
    return calls.apply("reshape", values[0], result.shape)


def _filled(seen: Extents) -> Shape | None:
    """Return the requested extents with -1 resolved; None if the number of elements differs."""
    wanted, count = seen.value(1), prod(seen.shapes[0])
    if wanted is None:
        return None
    rest = prod(e for e in wanted if e != -1)
    shape = tuple(count // rest if e == -1 and rest else e for e in wanted)
    return shape if prod(shape) == count else None


def _with_axis(seen: Extents) -> Shape | None:
    axis = seen.value(1)
    if axis is None:
        return None
    shape = seen.shapes[0]
    at = axis[0] % (len(shape) + 1)
    return (*shape[:at], 1, *shape[at:])


def _known_reshaped(values: Sequence[Array], options: OptionsTable) -> Array:
    extents = values[1].reshape(-1) if len(values) > 1 else options.ints(_EXTENTS)
    return values[0].reshape([int(extent) for extent in extents])


def _known_squeezed(values: Sequence[Array], options: OptionsTable) -> Array:
    return np.asarray(np.squeeze(values[0], options.ints(_AXES) or None))


def _known_expanded(values: Sequence[Array], _options: OptionsTable) -> Array:
    return np.expand_dims(values[0], int(values[1].reshape(-1)[0]))


_VIEW = Operator(
    kinds=(),
    storage=Storage(use=MemoryUse.COPY, view=True, scratch=no_scratch),
    integers=IntegerMeaning(moves=True),
)
OPERATORS = (
    replace(
        _VIEW,
        kinds=("RESHAPE",),
        relax=("reshape", "flatten"),
        shapes=ShapeMeaning(result=_filled, computed=True),
        numbers=PlainMeaning(form=_reshaped, known=_known_reshaped),
    ),
    replace(
        _VIEW,
        kinds=("SQUEEZE",),
        relax=("squeeze",),
        numbers=PlainMeaning(form=_squeezed, known=_known_squeezed),
    ),
    replace(
        _VIEW,
        kinds=("EXPAND_DIMS",),
        relax=("expand_dims",),
        shapes=ShapeMeaning(result=_with_axis),
        numbers=PlainMeaning(form=_expanded, known=_known_expanded),
    ),
    Operator(kinds=("BITCAST", "STABLEHLO_RESHAPE"), storage=Storage(use=MemoryUse.COPY)),
    Operator(
        kinds=("Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity"),
        storage=Storage(use=MemoryUse.COPY),
    ),
    Operator(
        kinds=("Dropout",), storage=Storage(use=MemoryUse.COPY)
    ),  # is the identity at inference
)
