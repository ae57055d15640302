"""SignalFramer: overlapping frames of a stream of samples, from TFLM's signal library.

A frame is invalid until enough samples have arrived. An invalid frame is zero here; TFLM leaves it
uninitialised. ``prefill``: zeros precede the first sample.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.parts import IntegerMeaning, StateUse
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Array, Calls, Expr, Scene, Shape, integer_option

_KIND = "SignalFramer"
_QUEUE, _SEEN = 1, 2


@dataclass(frozen=True)
class Framer:
    """Frames of ``size`` samples, ``step`` apart, from the rows of ``shape``."""

    shape: Shape
    size: int
    step: int
    prefill: bool

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(np.prod(self.shape[:-1], dtype=np.int64))

    @property
    def frames(self) -> int:
        """The number of frames of a row in each run."""
        return self.shape[-1] // self.step

    @property
    def needed(self) -> int:
        """The number of steps after which a frame is full."""
        return 1 if self.prefill else -(-self.size // self.step)

    @property
    def held(self) -> int:
        """The number of samples of a row kept for the next run."""
        return self.size - self.step if self.prefill else (self.needed - 1) * self.step


def _framer(shape: Shape, options: Mapping[str, Any]) -> Framer:
    size, step, prefill = (
        integer_option(_KIND, options, n) for n in ("frame_size", "frame_step", "prefill")
    )
    if not shape or step < 1 or size < step or not shape[-1] or shape[-1] % step:
        raise UnsupportedError(
            f"{_KIND} with frame_size {size} and frame_step {step} does not fit a tensor of "
            f"shape {list(shape)}"
        )
    return Framer(shape, size, step, bool(prefill))


def _keeps(shapes: Sequence[Shape], options: Mapping[str, Any]) -> list[tuple[Shape, str]]:
    op = _framer(shapes[0] if shapes else (), options)
    return [((op.rows, max(op.held, 1)), "int16"), ((1,), "int32")]


def _read(scene: Scene) -> Framer:
    op = _framer(scene.shape(0), scene.custom)
    scene.types(("int16", "int16", "int32"), ("int16", "bool"))
    made = (*op.shape[:-1], op.frames, op.size)
    if scene.results[0].shape != made or scene.results[1].shape != ():
        raise UnsupportedError(
            f"{scene.kind} from {list(op.shape)}: its result has shape "
            f"{list(scene.results[0].shape)}, expected {list(made)}"
        )
    return op


def _compute(op: Framer, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels.signal_frames import Queue, framer

    kernel = framer(Queue(op.rows, op.held, op.shape[-1]), op.step, op.size, op.needed)
    flat = calls.apply("reshape", values[0], (op.rows, op.shape[-1]))
    made, valid, *left = calls.kernels("q_framer", kernel, 4, flat, *values[1:])
    for state, value in zip((_QUEUE, _SEEN), left, strict=True):
        calls.leave(state, value)
    shape = (*op.shape[:-1], op.frames, op.size)
    return [calls.apply("reshape", made, shape), calls.apply("reshape", valid, ())]


def _reference(op: Framer, x: Array, queue: Array, seen: Array) -> tuple[Array, ...]:
    rows = x.reshape(op.rows, -1)
    line = np.concatenate([queue[:, : op.held], rows], axis=1)
    made = np.zeros((op.rows, op.frames, op.size), np.int16)
    for f in range(op.frames):
        if seen[0] + f + 1 >= op.needed:
            made[:, f] = line[:, f * op.step : f * op.step + op.size]
    left = line[:, rows.shape[1] :] if op.held else queue
    valid = np.array(seen[0] + 1 >= op.needed)
    now = np.minimum(seen, op.needed) + np.int32(op.frames)
    return made.reshape(*op.shape[:-1], op.frames, op.size), valid, left, now.astype(np.int32)


OPERATORS = (
    Operator(
        kinds=(_KIND,),
        integers=IntegerMeaning(exact=True, read=_read, compute=_compute, reference=_reference),
        state=StateUse(keeps=_keeps),
    ),
)
