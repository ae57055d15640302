"""DYNAMIC_UPDATE_SLICE: a tensor with a part replaced, at indices known at run time."""

from collections.abc import Sequence

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.parts import IntegerMeaning, PlainMeaning
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Calls, Expr, Scene


def _plain(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    """Return the updated tensor; stored values are moved unchanged, as LiteRT ignores scales."""
    from tvm_serenity.kernels.records import UpdateSlice
    from tvm_serenity.kernels.update_slice import update_slice

    shape, part, dtype = scene.shape(0), scene.shape(1), scene.dtype(0)
    if len(part) != len(shape) or any(p > s for p, s in zip(part, shape, strict=True)):
        raise UnsupportedError(
            f"its update of shape {list(part)} does not fit in a tensor of shape {list(shape)}"
        )
    spec = UpdateSlice(shape, part, dtype, scene.dtype(2))
    return calls.kernel("update_slice", update_slice(spec), *values)


OPERATORS = (
    Operator(
        kinds=("DYNAMIC_UPDATE_SLICE",),
        numbers=PlainMeaning(form=_plain),
        integers=IntegerMeaning(moves=True),
    ),
)
