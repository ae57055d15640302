"""SignalWindow: samples times a window of 16-bit fractions, from TFLM's signal library."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.parts import IntegerMeaning
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Array, Calls, Expr, Scene, Shape


@dataclass(frozen=True)
class SignalWindow:
    """A window on samples of ``shape``; each product is shifted right by ``shift``."""

    shape: Shape
    size: int
    shift: int


def _read(scene: Scene) -> SignalWindow:
    shape, window = scene.shape(0), scene.shape(1)
    scene.types(("int16", "int16"), ("int16",))
    shift = scene.option("shift")
    if not shape or len(window) != 1 or shape[-1] != window[0] or not 0 <= shift <= 31:
        raise UnsupportedError(
            f"{scene.kind} of shape {list(window)} on {list(shape)} with shift {shift} is not "
            "supported"
        )
    return SignalWindow(shape, window[0], shift)


def _compute(op: SignalWindow, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels.signal import window

    count = int(np.prod(op.shape[:-1], dtype=np.int64))
    flat = calls.apply("reshape", values[0], (count, op.size))
    made = calls.kernel("q_window", window(count, op.size, op.shift), flat, values[1])
    return calls.apply("reshape", made, op.shape)


def _reference(op: SignalWindow, x: Array, window: Array) -> Array:
    product = x.astype(np.int64) * window >> op.shift
    return np.asarray(np.clip(product, -32768, 32767), np.int16)


OPERATORS = (
    Operator(
        kinds=("SignalWindow",),
        integers=IntegerMeaning(exact=True, read=_read, compute=_compute, reference=_reference),
    ),
)
