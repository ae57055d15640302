"""SignalOverlapAdd: a signal from overlapping frames, from TFLM's signal library.

In 16 bits, where sums saturate, and in float32. Samples of a frame beyond its step are kept.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.parts import IntegerMeaning, StateUse
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Array, Calls, Expr, Scene, Shape, integer_option

_KIND, _REST = "SignalOverlapAdd", 1
_TYPES = {0: "float32", 7: "int16"}
"""Types by the numbers that the option ``T`` uses."""


@dataclass(frozen=True)
class OverlapAdd:
    """Frames, the last two axes of ``shape``, ``step`` samples apart."""

    shape: Shape
    step: int
    dtype: str

    @property
    def split(self) -> tuple[int, int, int]:
        """Rows, frames per row, and samples per frame."""
        *outer, frames, size = self.shape
        return int(np.prod(outer, dtype=np.int64)), frames, size


def _overlap_add(shape: Shape, options: Mapping[str, Any]) -> OverlapAdd:
    step, number = (integer_option(_KIND, options, name) for name in ("frame_step", "T"))
    if number not in _TYPES:
        raise UnsupportedError(f"TFLM does not support {_KIND} of type {number}")
    if len(shape) < 2 or not 1 <= step <= shape[-1]:
        raise UnsupportedError(
            f"{_KIND} with frame_step {step} does not fit frames of shape {list(shape)}"
        )
    return OverlapAdd(shape, step, _TYPES[number])


def _keeps(shapes: Sequence[Shape], options: Mapping[str, Any]) -> list[tuple[Shape, str]]:
    op = _overlap_add(shapes[0] if shapes else (), options)
    rows, _, size = op.split
    return [((rows, size), op.dtype)]


def _read(scene: Scene) -> OverlapAdd:
    op = _overlap_add(scene.shape(0), scene.custom)
    scene.types((op.dtype, op.dtype), (op.dtype,))
    made = (*op.shape[:-2], op.shape[-2] * op.step)
    if scene.results[0].shape != made:
        raise UnsupportedError(
            f"{scene.kind} from {list(op.shape)}: its result has shape "
            f"{list(scene.results[0].shape)}, expected {list(made)}"
        )
    return op


def _compute(op: OverlapAdd, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels.signal_frames import overlap_add

    kernel = overlap_add(*op.split, op.step, op.dtype)
    flat = calls.apply("reshape", values[0], op.split)
    made, left = calls.kernels("q_overlap_add", kernel, 2, flat, values[_REST])
    calls.leave(_REST, left)
    return calls.apply("reshape", made, (*op.shape[:-2], op.shape[-2] * op.step))


def _reference(op: OverlapAdd, x: Array, rest: Array) -> tuple[Array, Array]:
    rows, frames, size = op.split
    wide = np.int64 if op.dtype == "int16" else np.float32
    line: Array = np.zeros((rows, (frames - 1) * op.step + size + op.step), wide)
    line[:, :size] = rest
    for f, frame in enumerate(np.swapaxes(x.reshape(op.split), 0, 1)):
        part = line[:, f * op.step : f * op.step + size]
        part += frame
        if op.dtype == "int16":
            np.clip(part, -32768, 32767, out=part)
    end = frames * op.step
    made = line[:, :end].reshape(*op.shape[:-2], end)
    return made.astype(op.dtype), line[:, end : end + size].astype(op.dtype)


OPERATORS = (
    Operator(
        kinds=(_KIND,),
        integers=IntegerMeaning(exact=True, read=_read, compute=_compute, reference=_reference),
        state=StateUse(keeps=_keeps),
    ),
)
