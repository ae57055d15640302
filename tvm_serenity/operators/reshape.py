"""RESHAPE, SQUEEZE, EXPAND_DIMS and others: the same bytes under another shape."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from tvm_serenity.operators.parts import Integers, MemoryUse, Numbers, Storage
from tvm_serenity.operators.record import Operator, no_scratch
from tvm_serenity.operators.scene import Calls, Expr, Scene

_AXES = 0


def _squeezed(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    """A tensor without the named axes of one element, or without all of them."""
    shape = scene.shape(0)
    named = {axis % len(shape) for axis in scene.options.ints(_AXES)}
    gone = named or {i for i, extent in enumerate(shape) if extent == 1}
    return calls.apply("reshape", values[0], [e for i, e in enumerate(shape) if i not in gone])


def _expanded(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    """A tensor in its new shape; TVM's importer has an argument too many."""
    return calls.apply("reshape", values[0], scene.results[0].shape)


def _reshaped(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr | None:
    """A tensor in the shape that its file says, where the extents are computed; else None."""
    given, (result,) = scene.operands, scene.results
    computed = len(given) > 1 and given[1] is not None and given[1].values is None
    if not computed or prod(scene.shape(0)) != prod(result.shape):
        return None
    return calls.apply("reshape", values[0], result.shape)


_VIEW = Operator(
    kinds=(),
    storage=Storage(use=MemoryUse.COPY, view=True, scratch=no_scratch),
    integers=Integers(moves=True),
)
OPERATORS = (
    replace(
        _VIEW, kinds=("RESHAPE",), relax=("reshape", "flatten"), numbers=Numbers(form=_reshaped)
    ),
    replace(_VIEW, kinds=("SQUEEZE",), relax=("squeeze",), numbers=Numbers(form=_squeezed)),
    replace(_VIEW, kinds=("EXPAND_DIMS",), relax=("expand_dims",), numbers=Numbers(form=_expanded)),
    Operator(kinds=("BITCAST", "STABLEHLO_RESHAPE"), storage=Storage(use=MemoryUse.COPY)),
    Operator(
        kinds=("Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity"),
        storage=Storage(use=MemoryUse.COPY),
    ),
    Operator(kinds=("Dropout",), storage=Storage(use=MemoryUse.COPY)),  # does nothing at inference
)
