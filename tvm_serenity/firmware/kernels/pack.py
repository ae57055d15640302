"""Weights and requantisation in the layouts that the kernel library reads."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tvm_serenity.firmware.program import Array
from tvm_serenity.quantize.fixed import scaled

SMALL = 1 << 30
"""Sums below this can be doubled without overflow."""

LEAST_SHIFT = -31
"""The least shift; a smaller one makes every sum 0, and exceeds the library's 32 bits."""

OUT_OF_RANGE = 1 << 16
"""A limit that changes no result: results are clamped to 8 bits afterwards."""

BLOCK = 4
"""Inputs whose weights are adjacent."""


def centred(weights: Array, zero_point: int) -> npt.NDArray[np.int8] | None:
    """Return ``weights - zero_point`` as int8, None if a difference does not fit."""
    values = weights.astype(np.int64) - zero_point
    if values.size and (values.min() < -128 or values.max() > 127):
        return None
    return values.astype(np.int8)


def paired(weights: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """Return ``[inputs, outputs]`` as ``[pairs of outputs, blocks, 2, 4]``, padded with 0.

    Two outputs read each block of four inputs together.
    """
    inputs, outputs = weights.shape
    full = np.zeros((-(-inputs // BLOCK) * BLOCK, -(-outputs // 2) * 2), np.int8)
    full[:inputs, :outputs] = weights
    blocks = full.reshape(full.shape[0] // BLOCK, BLOCK, full.shape[1] // 2, 2)
    return np.ascontiguousarray(blocks.transpose(2, 0, 3, 1))


def in_groups(
    weights: npt.NDArray[np.int8], runs: Sequence[int], more: int
) -> npt.NDArray[np.int8]:
    """Return ``[inputs, outputs]`` plus ``more`` as ``[groups of outputs, blocks, 4, 16]``.

    The outputs of a group are in the order first, third, second, fourth. Each of ``runs`` of inputs
    begins a block of 16. Padding weights are 0 before ``more`` is added; 8-bit sums wrap around.
    """
    outputs = weights.shape[1]
    groups, blocks = -(-outputs // 4), [-(-n // 16) for n in runs]
    full = np.zeros((sum(blocks) * 16, groups * 4), np.uint8)
    source = target = 0
    for inputs, count in zip(runs, blocks, strict=True):
        full[target : target + inputs, :outputs] = weights[source : source + inputs].view(np.uint8)
        source, target = source + inputs, target + 16 * count
    laid = (full + np.uint8(more)).reshape(-1, 16, groups, 4)[..., (0, 2, 1, 3)]
    return np.ascontiguousarray(laid.transpose(2, 0, 3, 1)).view(np.int8)


NARROW = 8
"""Weights of 4 bits are -8 to 7."""
LARGEST_NARROW = 1 << 27
"""The limit of |sum| for 4-bit weights: kernels keep 16 times the sum in 32 bits."""
LEAST_NARROW = 256
"""The least number of weights in 4 bits; for fewer, the code for 4 bits costs more flash."""


def narrow(weights: npt.NDArray[np.int8], largest: npt.NDArray[np.int64]) -> bool:
    """Return whether weights are stored in 4 bits; ``largest`` bounds each output's |sum|."""
    if weights.size < LEAST_NARROW or int(largest.max(initial=0)) >= LARGEST_NARROW:
        return False
    return bool(weights.min() >= -NARROW and weights.max() < NARROW)


def paired_nibbles(weights: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """Return the layout of ``paired`` with two weights per byte: ``[pairs of outputs, blocks, 4]``.

    The weight of the first output is in the upper four bits.
    """
    both = paired(weights)
    return _joined(both[:, :, 0], both[:, :, 1])


def nibbles(weights: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """Return weights ``[..., even number]`` two per byte, the second in the upper four bits."""
    return _joined(weights[..., 1::2], weights[..., ::2])


def _joined(above: Array, below: Array) -> npt.NDArray[np.int8]:
    bits = above.astype(np.uint8) << 4 | below.astype(np.uint8) & 15
    return np.ascontiguousarray(bits.astype(np.uint8).view(np.int8))


def largest_sums(weights: npt.NDArray[np.int8], bias: Array, dtype: str) -> npt.NDArray[np.int64]:
    """Return the largest |sum| of each output of ``[..., outputs]`` for inputs of ``dtype``."""
    most = 255 if dtype == "uint8" else 128
    flat = np.abs(weights.astype(np.int64)).reshape(-1, weights.shape[-1])
    return np.asarray(np.abs(bias.astype(np.int64)) + most * flat.sum(axis=0))


@dataclass(frozen=True)
class Rounding:
    """The requantisation of sums: rounded ``once`` or twice, with multipliers and shifts.

    ``small``: doubling a sum does not overflow, and all shifts are to the right.
    """

    once: bool
    small: bool
    multipliers: npt.NDArray[np.int32]
    shifts: npt.NDArray[np.int8]

    @property
    def name(self) -> str:
        """The name of the rounding in C."""
        return f"ROUND_{'ONCE' if self.once else 'TWICE'}{'_SMALL' * self.small}"

    @property
    def once_small(self) -> bool:
        """Whether small sums are rounded once."""
        return self.once and self.small

    @property
    def twice_small(self) -> bool:
        """Whether small sums are rounded twice."""
        return self.small and not self.once

    @property
    def step(self) -> int:
        """1 if each channel has its own multiplier, 0 if all channels share one."""
        return int(self.multipliers.size > 1)


def rounding(
    kind: str,
    values: tuple[int, ...],
    shifts: tuple[int, ...],
    largest: npt.NDArray[np.int64],
) -> Rounding | None:
    """Return the library's form of a requantisation, None if the library lacks it.

    ``largest`` bounds each output's |sum|.
    """
    if kind not in ("tflite", "single"):
        return None
    small = min(shifts) >= LEAST_SHIFT and max(shifts) < 0 and int(largest.max(initial=0)) < SMALL
    if len(set(zip(values, shifts, strict=True))) == 1:
        values, shifts = values[:1], shifts[:1]
    multipliers, places = np.asarray(values, np.int32), np.asarray(shifts, np.int8)
    return Rounding(kind == "single", small, multipliers, places)


@dataclass(frozen=True)
class Channels:
    """Weights ``[..., outputs]``, and bias, multiplier and shift of each output."""

    weights: npt.NDArray[np.int8]
    bias: npt.NDArray[np.int32]
    values: tuple[int, ...]
    shifts: tuple[int, ...]


def with_small_constants(channels: Channels, dtype: str) -> Channels:
    """Return ``channels`` with small weights and biases for outputs that are constant.

    An output is constant if every input of ``dtype`` gives the same result. Such a dead channel of
    a trained network has a tiny scale and a bias near 2^30, which would exclude all channels from
    the short requantisation. Rounding twice is monotonic: if the least and the largest sum give the
    same value v, weights of 0, a bias of 4 v and the multiplier 1/4 also give v.
    """
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    weights, bias = channels.weights.copy(), channels.bias.astype(np.int64)
    flat = weights.astype(np.int64).reshape(-1, weights.shape[-1])
    reach = np.minimum(flat * low, flat * high).sum(0), np.maximum(flat * low, flat * high).sum(0)
    shape = bias.shape
    values = np.broadcast_to(np.asarray(channels.values, np.int64), shape).copy()
    shifts = np.broadcast_to(np.asarray(channels.shifts, np.int64), shape).copy()
    least, most = (scaled(bias + r, values, shifts) for r in reach)
    same = (least == most) & (shifts <= 0)
    result = np.clip(least, -OUT_OF_RANGE, OUT_OF_RANGE)
    weights[..., same] = 0
    bias[same], values[same], shifts[same] = 4 * result[same], 1 << 30, -1
    kept = values.tolist(), shifts.tolist()
    return Channels(weights, bias.astype(np.int32), tuple(kept[0]), tuple(kept[1]))
