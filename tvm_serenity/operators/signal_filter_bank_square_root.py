"""SignalFilterBankSquareRoot: rounded, shifted roots of sums, from TFLM's signal library.

Roots round to the nearest integer and saturate at 16 bits (for 32-bit sums) or 32 bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.parts import IntegerMeaning
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Array, Calls, Expr, Scene


@dataclass(frozen=True)
class SquareRoot:
    """Roots of ``channels`` sums."""

    channels: int


def _read(scene: Scene) -> SquareRoot:
    shape = scene.shape(0)
    scene.types(("uint64", "int32"), ("uint32",))
    if len(shape) != 1 or scene.results[0].shape != shape or scene.shape(1) != ():
        raise UnsupportedError(f"{scene.kind} of a tensor of shape {list(shape)} is not supported")
    return SquareRoot(shape[0])


def _compute(op: SquareRoot, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels.signal_levels import square_root

    bits = calls.apply("reshape", values[1], (1,))
    return calls.kernel("q_square_root", square_root(op.channels), values[0], bits)


def _reference(op: SquareRoot, x: Array, bits: Array) -> Array:
    del op
    made = []
    for value in map(int, x):
        root = isqrt(value)
        most = 0xFFFF if value < 2**32 else 0xFFFFFFFF
        nearest = root + (value - root * root > root and root != most)
        made.append(nearest >> min(max(int(bits), 0), 31))
    return np.array(made, np.uint32)


OPERATORS = (
    Operator(
        kinds=("SignalFilterBankSquareRoot",),
        integers=IntegerMeaning(exact=True, read=_read, compute=_compute, reference=_reference),
    ),
)
