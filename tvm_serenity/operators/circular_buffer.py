"""CIRCULAR_BUFFER: the last rows of a stream, a custom operator of TFLM's streaming models.

Its result is a state: each run drops the oldest row and appends the input. TFLM ends every second
run early at this operator if the model restarts it every second run; such models are refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.parts import IntegerMeaning, StateUse
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Array, Calls, Expr, Scene, Shape

_BUFFER = 1
_CYCLES = "cycles_max"


@dataclass(frozen=True)
class CircularBuffer:
    """A buffer of rows, the last two axes of ``shape``; the first axis is 1."""

    shape: Shape


def _read(scene: Scene) -> CircularBuffer:
    scene.types(("int8", "int8"), ("int8",))
    cycles = scene.option(_CYCLES)
    if cycles != 1:
        raise UnsupportedError(
            f"{scene.kind} needs {_CYCLES}=1, not {cycles}: TFLM would end runs early at this "
            "operator"
        )
    given, made = scene.shape(0), scene.results[0].shape
    alike = len(given) == len(made) == 4 and given[:2] == (1, 1) and given[2:] == made[2:]
    if not alike or made[0] != 1:
        raise UnsupportedError(
            f"{scene.kind} needs an input of one row and a result of the same row size, not "
            f"{list(given)} to {list(made)}"
        )
    return CircularBuffer(made)


def _compute(op: CircularBuffer, values: Sequence[Expr], calls: Calls) -> Expr:
    newest, held, rows = values[0], values[_BUFFER], op.shape[1]
    if rows == 1:
        return calls.leave(_BUFFER, newest)
    older = calls.apply("strided_slice", held, axes=[1], begin=[1], end=[rows])
    return calls.leave(_BUFFER, calls.apply("concat", [older, newest], axis=1))


def _reference(_op: CircularBuffer, newest: Array, held: Array) -> tuple[Array, Array]:
    made = np.concatenate([held[:, 1:], newest], axis=1)
    return made, made


OPERATORS = (
    Operator(
        kinds=("CIRCULAR_BUFFER",),
        integers=IntegerMeaning(exact=True, read=_read, compute=_compute, reference=_reference),
        state=StateUse(holds=True),
    ),
)
