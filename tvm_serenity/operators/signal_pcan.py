"""SignalPCAN: channels amplified by a table of their noise, then compressed.

From TFLM's signal library. The table holds a parabola for each power of two of the noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.parts import IntegerMeaning
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Array, Calls, Expr, Scene

ENTRIES = 125
"""Entries of the table: three for the least noises, then four per power of two but the last."""


@dataclass(frozen=True)
class Pcan:
    """Channels times their gain, shifted right by ``shift``."""

    channels: int
    shift: int
    entries: int


def _read(scene: Scene) -> Pcan:
    shape, table, shift = scene.shape(0), scene.shape(2), scene.option("snr_shift")
    scene.types(("uint32", "uint32", "int16"), ("uint32",))
    if len(shape) != 1 or {scene.shape(1), scene.results[0].shape} != {shape}:
        raise UnsupportedError(f"{scene.kind} of a tensor of shape {list(shape)} is not supported")
    if len(table) != 1 or table[0] < ENTRIES or not 0 <= shift < 64:
        raise UnsupportedError(
            f"{scene.kind} with a table of shape {list(table)} and snr_shift {shift} is not "
            "supported"
        )
    return Pcan(shape[0], shift, table[0])


def _compute(op: Pcan, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels.signal_levels import pcan

    return calls.kernel("q_pcan", pcan(op.channels, op.shift, op.entries), *values)


def _reference(op: Pcan, x: Array, noise: Array, table: Array) -> Array:
    values = table.astype(int).tolist()
    gains = [_gain(level, values) for level in noise.tolist()]
    made = []
    for value, gain in zip(x.tolist(), gains, strict=True):
        ratio = ((value * gain) % 2**64 >> op.shift) % 2**32
        small = (ratio * ratio) % 2**32 >> 20
        made.append(small if ratio < 8192 else (ratio >> 6) - 64)
    return np.array(made, np.uint32)


def _gain(level: int, table: list[int]) -> int:
    """Return the parabola's value for a noise level, as an unsigned 32-bit integer."""
    if level <= 2:
        return table[level] % 2**32
    bits = level.bit_length()
    constant, linear, square = table[4 * bits - 6 :][:3]
    place = (level << 11 >> bits if bits >= 11 else level << (11 - bits)) & 1023
    made = ((square * place >> 5) + (linear << 5)) * place
    made = ((made + (1 << 14)) >> 15) + constant
    return int(np.int64(made).astype(np.int16)) % 2**32


OPERATORS = (
    Operator(
        kinds=("SignalPCAN",),
        integers=IntegerMeaning(exact=True, read=_read, compute=_compute, reference=_reference),
    ),
)
