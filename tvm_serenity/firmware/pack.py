"""Weights and requantisation in the form that the kernel library reads."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tvm_serenity.firmware.program import Array

SMALL = 1 << 30
"""Sums below this can be doubled without overflow."""

BLOCK = 4
"""Inputs whose weights stand together."""


def centred(weights: Array, zero_point: int) -> npt.NDArray[np.int8] | None:
    """Return ``weights - zero_point`` as int8, None where they do not fit."""
    values = weights.astype(np.int64) - zero_point
    if values.size and (values.min() < -128 or values.max() > 127):
        return None
    return values.astype(np.int8)


def paired(weights: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """Return ``[inputs, outputs]`` as ``[pairs of outputs, blocks, 2, 4]``, filled up with 0.

    Two outputs read each block of four inputs together.
    """
    inputs, outputs = weights.shape
    full = np.zeros((-(-inputs // BLOCK) * BLOCK, -(-outputs // 2) * 2), np.int8)
    full[:inputs, :outputs] = weights
    blocks = full.reshape(full.shape[0] // BLOCK, BLOCK, full.shape[1] // 2, 2)
    return np.ascontiguousarray(blocks.transpose(2, 0, 3, 1))


def largest_sum(weights: npt.NDArray[np.int8], bias: Array, dtype: str) -> int:
    """Return the largest |sum| an output ``[..., outputs]`` can reach for inputs of ``dtype``."""
    most = 255 if dtype == "uint8" else 128
    flat = np.abs(weights.astype(np.int64)).reshape(-1, weights.shape[-1])
    return int((np.abs(bias.astype(np.int64)) + most * flat.sum(axis=0)).max(initial=0))


@dataclass(frozen=True)
class Rounding:
    """How sums become stored values: the library's name of it, multipliers and shifts."""

    name: str
    multipliers: npt.NDArray[np.int32]
    shifts: npt.NDArray[np.int8]

    @property
    def step(self) -> int:
        """1 where every channel has its multiplier, 0 where one serves all."""
        return int(self.multipliers.size > 1)


def rounding(
    kind: str, values: tuple[int, ...], shifts: tuple[int, ...], largest: int
) -> Rounding | None:
    """Return the library's form of a requantisation, None where it has none."""
    names = {"tflite": "ROUND_TWICE", "single": "ROUND_ONCE"}
    if kind not in names:
        return None
    name = names[kind]
    if kind == "tflite" and min(shifts) >= -22 and max(shifts) < 0 and largest < SMALL:
        name = "ROUND_TWICE_SMALL"
    if len(set(zip(values, shifts, strict=True))) == 1:
        values, shifts = values[:1], shifts[:1]
    return Rounding(name, np.asarray(values, np.int32), np.asarray(shifts, np.int8))
