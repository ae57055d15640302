"""Pairs of outputs that share a halfword for their weights, for the DSP extension.

Kernels for the DSP extension requantise in five instructions, or in four if results below the zero
point are clamped to it. The functions check the conditions of this for each layer from its weights,
biases and multipliers; other kernels compute a layer that does not meet them.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from tvm_serenity.firmware.kernels.pack import BLOCK
from tvm_serenity.firmware.kernels.parts import epilogue
from tvm_serenity.firmware.kernels.parts.epilogue import is_short, largest
from tvm_serenity.firmware.kernels.parts.layer import RoundedConvolution
from tvm_serenity.firmware.program import Array

FIRST_SUMS = 1 << 23
"""The limit of |sum| of the first output of a pair: it is kept in 24 bits."""


def words_of(layer: RoundedConvolution, weights: Any) -> npt.NDArray[np.int32] | None:
    """Return the weights in words, None if no kernel for the DSP extension computes the layer."""
    words = paired_words(weights)
    if words is None or not is_short(layer) or layer.spec.channels % 2 or layer.narrow:
        return None
    return None if int(largest(layer)[::2].max(initial=0)) >= FIRST_SUMS else words


def paired_words(weights: npt.NDArray[np.int8]) -> npt.NDArray[np.int32] | None:
    """Return ``[inputs, outputs]`` as words ``[pairs, blocks, 2]`` of two inputs, two outputs each.

    A halfword is 256 times the weight of the first output plus the weight of the second; None if a
    sum does not fit. A block of four inputs is a word of its even and a word of its odd inputs.
    """
    inputs, outputs = weights.shape
    full = np.zeros((-(-inputs // BLOCK) * BLOCK, -(-outputs // 2) * 2), np.int64)
    full[:inputs, :outputs] = weights
    both = 256 * full[:, ::2] + full[:, 1::2]
    if both.size and (both.min() < -(1 << 15) or both.max() >= 1 << 15):
        return None
    blocks = both.reshape(-1, 2, 2, both.shape[1]).astype("<i2")
    return np.ascontiguousarray(blocks.transpose(3, 0, 2, 1)).view("<i4")[..., 0]


def pair_numbers(layer: RoundedConvolution) -> Array:
    """Return biases and requantisation of each pair of outputs: ``[pairs, 6]`` words."""
    bias = layer.bias.astype(np.int64).reshape(-1, 2)
    both = np.stack([256 * bias[:, 0] + bias[:, 1], bias[:, 1]], axis=1)
    each = epilogue.numbers(layer).reshape(-1, 4)
    return np.concatenate([both, each], axis=1).astype(np.uint32).view(np.int32)
