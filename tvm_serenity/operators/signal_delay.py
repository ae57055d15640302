"""SignalDelay: delayed samples, from TFLM's signal library."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.parts import IntegerMeaning, StateUse
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Array, Calls, Expr, Scene, Shape, integer_option

_KIND, _QUEUE = "SignalDelay", 1


@dataclass(frozen=True)
class Delay:
    """Rows of samples, the last axis of ``shape``, delayed by ``length`` samples."""

    shape: Shape
    length: int

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(np.prod(self.shape[:-1], dtype=np.int64))


def _keeps(shapes: Sequence[Shape], options: Mapping[str, Any]) -> list[tuple[Shape, str]]:
    length = integer_option(_KIND, options, "delay_length")
    if not shapes or not shapes[0] or length < 0:
        raise UnsupportedError(f"{_KIND} with a delay of {length} samples is not supported")
    return [((int(np.prod(shapes[0][:-1])), max(length, 1)), "int16")]


def _read(scene: Scene) -> Delay:
    scene.types(("int16", "int16"), ("int16",))
    if scene.results[0].shape != scene.shape(0):
        raise UnsupportedError(
            f"{scene.kind}: its result has shape {list(scene.results[0].shape)}, expected "
            f"that of its input, {list(scene.shape(0))}"
        )
    return Delay(scene.shape(0), scene.option("delay_length"))


def _compute(op: Delay, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels.signal_frames import Queue, delay

    queue = Queue(op.rows, op.length, op.shape[-1])
    flat = calls.apply("reshape", values[0], (op.rows, op.shape[-1]))
    made, left = calls.kernels("q_delay", delay(queue), 2, flat, values[_QUEUE])
    calls.leave(_QUEUE, left)
    return calls.apply("reshape", made, op.shape)


def _reference(op: Delay, x: Array, queue: Array) -> tuple[Array, Array]:
    rows = x.reshape(op.rows, -1)
    line = np.concatenate([queue[:, : op.length], rows], axis=1)
    left = line[:, rows.shape[1] :] if op.length else queue
    return line[:, : rows.shape[1]].reshape(op.shape), left


OPERATORS = (
    Operator(
        kinds=(_KIND,),
        integers=IntegerMeaning(exact=True, read=_read, compute=_compute, reference=_reference),
        state=StateUse(keeps=_keeps),
    ),
)
