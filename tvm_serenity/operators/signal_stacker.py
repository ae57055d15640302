"""SignalStacker: frames with their left and right neighbours, from TFLM's signal library.

The first frame stands for the frames before it. The result is invalid until enough frames have
arrived: here it is zeros, TFLM leaves it uninitialised.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.parts import IntegerMeaning, StateUse
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Array, Calls, Expr, Scene, Shape, integer_option

_KIND = "SignalStacker"
_QUEUE, _SEEN = 1, 2


@dataclass(frozen=True)
class Stacker:
    """``frames`` frames of ``channels``, ``left`` of them before the current one."""

    channels: int
    left: int
    frames: int
    step: int

    @property
    def held(self) -> int:
        """The number of values kept for the next run."""
        return (self.frames - 1) * self.channels


def _stacker(options: Mapping[str, Any]) -> Stacker:
    names = ("num_channels", "stacker_left_context", "stacker_right_context", "stacker_step")
    channels, left, right, step = (integer_option(_KIND, options, name) for name in names)
    frames = left + right + 1
    if channels < 1 or min(left, right) < 0 or not 1 <= step <= frames:
        raise UnsupportedError(
            f"{_KIND} of {channels} channels with context {left} + {right} and step {step} is "
            "not supported"
        )
    return Stacker(channels, left, frames, step)


def _keeps(_shapes: Sequence[Shape], options: Mapping[str, Any]) -> list[tuple[Shape, str]]:
    return [((1, max(_stacker(options).held, 1)), "int16"), ((2,), "int32")]


def _read(scene: Scene) -> Stacker:
    op = _stacker(scene.custom)
    scene.types(("int16", "int16", "int32"), ("int16", "bool"))
    shapes = scene.shape(0), scene.results[0].shape, scene.results[1].shape
    if shapes != ((op.channels,), (op.channels * op.frames,), ()):
        raise UnsupportedError(
            f"{scene.kind} from {list(shapes[0])} to {list(shapes[1])} is not supported"
        )
    return op


def _compute(op: Stacker, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels.signal_frames import Queue, stacker

    kernel = stacker(Queue(1, op.held, op.channels), op.left, op.step)
    row = calls.apply("reshape", values[0], (1, op.channels))
    made, valid, *left = calls.kernels("q_stacker", kernel, 4, row, *values[1:])
    for state, value in zip((_QUEUE, _SEEN), left, strict=True):
        calls.leave(state, value)
    return [made, calls.apply("reshape", valid, ())]


def _reference(op: Stacker, x: Array, queue: Array, seen: Array) -> tuple[Array, ...]:
    count, started = seen.tolist()
    older = queue[0, : op.held] if started else np.tile(x, op.frames - 1)
    count = (count if started else op.left) + 1
    stack = np.concatenate([older, x]).astype(np.int16)
    valid = count >= op.frames
    left = stack[None, op.channels :] if op.held else queue
    now = np.array([count - valid * op.step, 1], np.int32)
    return stack if valid else np.zeros_like(stack), np.array(valid), left, now


OPERATORS = (
    Operator(
        kinds=(_KIND,),
        integers=IntegerMeaning(exact=True, read=_read, compute=_compute, reference=_reference),
        state=StateUse(keeps=_keeps),
    ),
)
