"""Channel shuffles of NCHW images: split of the channel axis, transpose, join.

ShuffleNet expresses a shuffle by a reshape to ``[N, groups, channels / groups, H, W]``, a transpose
of the middle axes, and a reshape back. With channels last the same is a transpose within each
pixel.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import relax

from tvm_serenity import compat


@dataclass(frozen=True)
class Shuffle:
    """A shuffle of ``source``, an image in NCHW.

    ``parts``: the extents that the channel axis is split into; ``order``: their permutation.
    """

    source: Any
    parts: tuple[int, ...]
    order: tuple[int, ...]


def shuffle(value: relax.Expr, values: Mapping[Any, Any]) -> Shuffle | None:
    """Return the shuffle that ends in ``value``; None if there is none.

    ``values``: the expression of each variable.
    """
    joined = _named(value, "relax.reshape")
    moved = None if joined is None else _named(_held(joined.args[0], values), "relax.permute_dims")
    apart = None if moved is None else _named(_held(moved.args[0], values), "relax.reshape")
    if joined is None or moved is None or apart is None or moved.attrs.axes is None:
        return None
    made, middle, given = (_extents(call) for call in (joined, apart, apart.args[0]))
    if len(given) != 4 or made != given:
        return None
    count = _parts(given, middle)
    axes = [int(axis) % len(middle) for axis in moved.attrs.axes]
    inner = axes[1 : 1 + count]
    rest = list(range(1 + count, len(middle)))
    if not count or sorted(inner) != list(range(1, 1 + count)) or axes != [0, *inner, *rest]:
        return None
    return Shuffle(apart.args[0], middle[1 : 1 + count], tuple(axis - 1 for axis in inner))


def _parts(given: Sequence[int], middle: Sequence[int]) -> int:
    """Return the number of axes that the channels are split into.

    0 if other axes are among them.
    """
    batch, channels, *_ = given
    if not middle or middle[0] != batch:
        return 0
    return next((n for n in range(1, len(middle)) if math.prod(middle[1 : 1 + n]) == channels), 0)


def _held(value: relax.Expr, values: Mapping[Any, Any]) -> relax.Expr:
    """Return the value of a variable, through renamings."""
    while isinstance(value, relax.Var) and value in values:
        value = values[value]
    return value


def _named(value: relax.Expr, name: str) -> Any:
    return value if compat.is_call(value) and compat.op_name(value) == name else None


def _extents(value: relax.Expr) -> tuple[int, ...]:
    return tuple(compat.static_shape(value.ty, "tensor"))
