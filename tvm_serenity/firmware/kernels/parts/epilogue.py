"""Requantisation in five instructions (``epilogue.h``), for kernels of one instruction set."""

import numpy as np
import numpy.typing as npt

from tvm_serenity.firmware.kernels.pack import largest_sums
from tvm_serenity.firmware.kernels.parts.layer import RoundedConvolution

WORD_LIMIT = 1 << 31


def largest(layer: RoundedConvolution) -> npt.NDArray[np.int64]:
    """Return the largest |sum| of each output."""
    return largest_sums(layer.weights, layer.bias, layer.spec.dtype)


def numbers(layer: RoundedConvolution) -> npt.NDArray[np.int64]:
    """Return the requantisation of each output for ``epilogue.h``: ``[outputs, 2]`` words."""
    count = layer.spec.channels
    multipliers = np.broadcast_to(layer.rounding.multipliers.astype(np.int64), count)
    twice = 2 * layer.spec.requantise.zero_point + 1
    return np.stack([multipliers, (twice << 8) + _right(layer) - 1], axis=1)


def _right(layer: RoundedConvolution) -> npt.NDArray[np.int64]:
    """Return the right shift of each output."""
    return -np.broadcast_to(layer.rounding.shifts.astype(np.int64), layer.spec.channels)


def is_short(layer: RoundedConvolution) -> bool:
    """Return whether five instructions requantise the sums: no intermediate exceeds 32 bits.

    They saturate, so that limits beyond those of the type, within which results wrap, are not for
    them.
    """
    spec, held = layer.spec, np.iinfo(layer.spec.requantise.dtype)
    if not layer.rounding.small or spec.dtype != spec.requantise.dtype:
        return False
    if spec.requantise.low < held.min or spec.requantise.high > held.max:
        return False
    if not spec.channels:
        return False
    added = (2 * spec.requantise.zero_point + 1) << (_right(layer) - 1)
    return bool((np.abs(added) + largest(layer) + 2 < WORD_LIMIT).all())


def refusal(layer: RoundedConvolution) -> str:
    """Return why no kernel for the core's own instruction set computes a layer."""
    if layer.narrow:
        return "does not support weights of 4 bits"
    if layer.spec.dtype != layer.spec.requantise.dtype:
        return "does not support results of another type than the inputs"
    if not is_short(layer):
        return "supports only sums below 2^30 and right shifts"
    if layer.depthwise:
        return "supports only depthwise convolutions of 3x3 that are rounded twice"
    return "does not support these weights or windows"
