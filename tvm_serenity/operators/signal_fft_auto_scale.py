"""SignalFftAutoScale: samples shifted left as far as the largest allows, and the shift.

From TFLM's signal library. The largest magnitude is computed sample by sample in 16 bits, in which
the magnitude of -32768 is -32768: any later sample replaces it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.parts import IntegerMeaning
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Array, Calls, Expr, Scene

_LEAST = -32768


@dataclass(frozen=True)
class AutoScale:
    """An automatic scaling of ``size`` samples."""

    size: int


def _read(scene: Scene) -> AutoScale:
    shape = scene.shape(0)
    scene.types(("int16",), ("int16", "int32"))
    if len(shape) != 1 or scene.results[0].shape != shape or scene.results[1].shape != ():
        raise UnsupportedError(f"{scene.kind} of a tensor of shape {list(shape)} is not supported")
    return AutoScale(shape[0])


def _compute(op: AutoScale, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels.signal import auto_scale

    made, bits = calls.kernels("q_auto_scale", auto_scale(op.size), 2, values[0])
    return [made, calls.apply("reshape", bits, ())]


def _reference(op: AutoScale, x: Array) -> tuple[Array, Array]:
    del op
    samples = [int(v) for v in x]
    last = max((i for i, v in enumerate(samples) if v == _LEAST), default=None)
    if last is None:
        largest = max(map(abs, samples), default=0)
    else:
        largest, later = _LEAST, samples[last + 1 :]
        if later:
            least, *others = later
            largest = max([least, *map(abs, others)])
    bits = max(15 - largest.bit_length(), 0) if largest > 0 else 0
    shifted = x.astype(np.int64) << bits
    return shifted.astype(np.int16), np.array(bits, np.int32)


OPERATORS = (
    Operator(
        kinds=("SignalFftAutoScale",),
        integers=IntegerMeaning(exact=True, read=_read, compute=_compute, reference=_reference),
    ),
)
