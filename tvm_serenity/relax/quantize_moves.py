"""Operators that move or select elements: they act on stored values as on real values.

The largest stored value is the largest real one; a border of a real number is a border of the
stored value for it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.operators import RELAX
from tvm_serenity.quantize.params import Affine

_CHOICES = ("relax.max", "relax.min", *(f"relax.nn.max_pool{n}d" for n in (1, 2, 3)))


class RefusedError(Exception):
    """The reason why a region stays float."""


def moving(value: relax.Expr, look: Callable[[Any], Any]) -> Any:
    """Return ``value`` if it is a call that moves or selects elements, otherwise None.

    The elements are those of its first argument. A part of a split is a slice.
    """
    if isinstance(value, relax.TupleGetItem):
        split = look(value.tuple_value)
        named = compat.is_call(split) and compat.op_name(split) == "relax.split"
        return _slice(split, value.index) if named else None
    if not compat.is_call(value):
        return None
    name = compat.op_name(value)
    if name == "relax.nn.pad":
        return value if str(value.attrs.pad_mode) == "constant" else None
    if name == "relax.image.resize2d":
        mode = str(value.attrs.coordinate_transformation_mode)
        nearest = str(value.attrs.method) == "nearest_neighbor"
        return value if nearest and mode != "tf_crop_and_resize" else None
    known = RELAX.get(name)
    return value if name in _CHOICES or (known is not None and known.integers.moves) else None


def again(
    call: relax.Call, value: relax.Expr, params: Affine, limits: tuple[int, int] | None = None
) -> Any:
    """Return the call on stored values.

    ``limits``: of a fused activation. Raises :class:`RefusedError` for a border value that is not
    representable.
    """
    if compat.op_name(call) != "relax.nn.pad":
        return compat.call_like(call, [value, *call.args[1:]])
    real, (low, high) = float(call.attrs.pad_value), limits or params.limits
    stored = params.stored(real) if np.isfinite(real) else high + 1
    if not params.limits[0] <= stored <= params.limits[1] or real != params.real(stored):
        raise RefusedError("the quantised type cannot represent the border value")
    stored = min(max(stored, low), high)
    amounts = [int(p) for p in call.attrs.pad_width]
    return relax.op.nn.pad(value, amounts, "constant", float(stored))


def _slice(split: relax.Call, index: int) -> Any:
    """Return a part of a split as a slice."""
    shapes = [shape_of(part) for part in split.ty.fields]
    axis = int(split.attrs.axis) % len(shapes[0])
    first = sum(shape[axis] for shape in shapes[:index])
    bounds = ([axis], [first], [first + shapes[index][axis]])
    made = relax.op.strided_slice(split.args[0], *bounds)
    return relax.BlockBuilder().normalize(made)


def shape_of(ty: relax.Type) -> tuple[int, ...]:
    """Return the shape of a tensor type."""
    return tuple(compat.static_shape(ty, "tensor"))
