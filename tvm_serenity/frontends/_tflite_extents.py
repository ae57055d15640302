"""How the shape of a result follows from what an operator of a ``.tflite`` file reads."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tvm_serenity.frontends._flatbuffer import Table

Array = npt.NDArray[np.int64]
Shape = tuple[int, ...]
_KEEP_DIMS_OF_DENSE, _KEEP_DIMS_OF_REDUCED, _AXIS_OF_JOINED = 2, 0, 0
COMPUTED = ("RESHAPE", "SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND")
"""Operators whose result may be of another shape than stored though nothing that they read is."""


@dataclass(frozen=True)
class Extents:
    """What an operator reads: shapes, integers where these are known, options.

    ``stored``: the shape that the file says of the result.
    """

    shapes: Sequence[Shape]
    values: Sequence[Array | None]
    options: Table
    stored: Shape

    def value(self, operand: int) -> list[int] | None:
        """The integers of an operand, in a row."""
        found = self.values[operand] if operand < len(self.values) else None
        return None if found is None else [int(e) for e in found.reshape(-1)]


def alike(seen: Extents) -> Shape:
    """Return what the shapes of all operands are broadcast to."""
    return tuple(np.broadcast_shapes(*seen.shapes))


def _as_the_first(seen: Extents) -> Shape:
    return seen.shapes[0]


def _of_the_batch(seen: Extents) -> Shape | None:
    """As stored, but for the batch."""
    return (seen.shapes[0][0], *seen.stored[1:]) if seen.shapes[0] and seen.stored else None


def _filled(seen: Extents) -> Shape | None:
    """The extents of a RESHAPE, of which one may be -1; None where they do not fit."""
    wanted, count = seen.value(1), math.prod(seen.shapes[0])
    if wanted is None:
        return None
    rest = math.prod(e for e in wanted if e != -1)
    shape = tuple(count // rest if e == -1 and rest else e for e in wanted)
    return shape if math.prod(shape) == count else None


def _dense(seen: Extents) -> Shape | None:
    if len(seen.shapes[1]) != 2:
        return None
    units, width = seen.shapes[1]
    if seen.options.u8(_KEEP_DIMS_OF_DENSE):
        return (*seen.shapes[0][:-1], units)
    return (math.prod(seen.shapes[0]) // width, units)


def _turned(seen: Extents) -> Shape | None:
    order = seen.value(1)
    return None if order is None else tuple(seen.shapes[0][axis] for axis in order)


def _to_batch(seen: Extents) -> Shape | None:
    """SPACE_TO_BATCH_ND: every block of an axis becomes a batch of its own."""
    blocks, borders = seen.value(1), seen.value(2)
    if blocks is None or borders is None:
        return None
    batch, *extents = seen.shapes[0]
    padded = [extents[i] + borders[2 * i] + borders[2 * i + 1] for i in range(len(blocks))]
    inner = [extent // block for extent, block in zip(padded, blocks, strict=True)]
    return (batch * math.prod(blocks), *inner, *extents[len(blocks) :])


def _from_batch(seen: Extents) -> Shape | None:
    """BATCH_TO_SPACE_ND: the blocks beside each other again, cut."""
    blocks, cut = seen.value(1), seen.value(2)
    if blocks is None or cut is None:
        return None
    batch, *extents = seen.shapes[0]
    inner = [extents[i] * b - cut[2 * i] - cut[2 * i + 1] for i, b in enumerate(blocks)]
    return (batch // math.prod(blocks), *inner, *extents[len(blocks) :])


def _expanded(seen: Extents) -> Shape | None:
    axis = seen.value(1)
    if axis is None:
        return None
    shape = seen.shapes[0]
    at = axis[0] % (len(shape) + 1)
    return (*shape[:at], 1, *shape[at:])


def _part(seen: Extents) -> Shape | None:
    """SLICE: as many as are asked for, or all that are left."""
    begin, size = seen.value(1), seen.value(2)
    if begin is None or size is None or not len(begin) == len(size) == len(seen.shapes[0]):
        return None
    ranges = zip(seen.shapes[0], begin, size, strict=True)
    return tuple(max(extent - b, 0) if s == -1 else s for extent, b, s in ranges)


def _joined(seen: Extents) -> Shape | None:
    """CONCATENATION along its axis, of operands that are alike beside it."""
    first = seen.shapes[0]
    axis = seen.options.i32(_AXIS_OF_JOINED)
    if not -len(first) <= axis < len(first):
        return None
    axis %= len(first)
    around = {(*s[:axis], *s[axis + 1 :]) for s in seen.shapes}
    if len(around) != 1 or any(len(s) != len(first) for s in seen.shapes):
        return None
    return (*first[:axis], sum(s[axis] for s in seen.shapes), *first[axis + 1 :])


SHAPES: Mapping[str, Callable[[Extents], Shape | None]] = {
    "AVERAGE_POOL_2D": _of_the_batch,
    "BATCH_TO_SPACE_ND": _from_batch,
    "CAST": _as_the_first,
    "CONCATENATION": _joined,
    "CONV_2D": _of_the_batch,
    "DEPTHWISE_CONV_2D": _of_the_batch,
    "DEQUANTIZE": _as_the_first,
    "EXPAND_DIMS": _expanded,
    "FULLY_CONNECTED": _dense,
    "L2_NORMALIZATION": _as_the_first,
    "LOG_SOFTMAX": _as_the_first,
    "MAX_POOL_2D": _of_the_batch,
    "QUANTIZE": _as_the_first,
    "RESHAPE": _filled,
    "SLICE": _part,
    "SOFTMAX": _as_the_first,
    "SPACE_TO_BATCH_ND": _to_batch,
    "TRANSPOSE": _turned,
}
"""The shape of the result of an operator, None where it is not known."""


def _sliced(values: Sequence[Array], options: Table) -> Array:
    """STRIDED_SLICE of a vector: one range, from and to the ends where its masks say so."""
    vector, begin, end, step = values
    first, last, by = int(begin[0]), int(end[0]), int(step[0])
    if options.i32(4) & 1:  # one element, without its axis
        return np.asarray(vector[first], np.int64)
    return vector[None if options.i32(0) & 1 else first : None if options.i32(1) & 1 else last : by]


def _cut(values: Sequence[Array], _options: Table) -> Array:
    """SLICE of a vector."""
    vector, begin, size = values
    first, count = int(begin[0]), int(size[0])
    return vector[first : None if count < 0 else first + count]


VALUES: Mapping[str, Callable[[Sequence[Array], Table], Array]] = {
    "ADD": lambda v, _o: v[0] + v[1],
    "CAST": lambda v, _o: v[0],
    "CONCATENATION": lambda v, _o: np.concatenate([np.atleast_1d(e) for e in v]),
    "EXPAND_DIMS": lambda v, _o: v[0].reshape(1, *v[0].shape),
    "GATHER": lambda v, _o: v[0][v[1]],
    "MAXIMUM": lambda v, _o: np.maximum(v[0], v[1]),
    "MINIMUM": lambda v, _o: np.minimum(v[0], v[1]),
    "MUL": lambda v, _o: v[0] * v[1],
    "PACK": lambda v, _o: np.stack(v),
    "REDUCE_PROD": lambda v, o: np.prod(v[0], keepdims=bool(o.u8(_KEEP_DIMS_OF_REDUCED))),
    "RESHAPE": lambda v, _o: v[0].reshape([int(e) for e in v[1]]),
    "SLICE": _cut,
    "SQUEEZE": lambda v, _o: v[0].reshape(-1)[0] if v[0].size == 1 else v[0],
    "STRIDED_SLICE": _sliced,
    "SUB": lambda v, _o: v[0] - v[1],
}
"""What computes extents from extents: on scalars and vectors of integers."""
