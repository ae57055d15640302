"""Pairs of outputs whose weights lie in one halfword, for the DSP extension.

All kernels of it requantise in five instructions, or in four where results below their zero point
are clamped to it. What they need is shown here for each layer from its weights, biases and
multipliers; a layer that is refused takes the library's other kernels.
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
"""Sums of the first output of a pair are below this: the difference that holds them has 24 bits."""


def words_of(layer: RoundedConvolution, weights: Any) -> npt.NDArray[np.int32] | None:
    """Return the weights in words, None where the layer has no kernel for the DSP extension."""
    words = paired_words(weights)
    if words is None or not is_short(layer) or layer.spec.channels % 2 or layer.narrow:
        return None
    return None if int(largest(layer)[::2].max(initial=0)) >= FIRST_SUMS else words


def paired_words(weights: npt.NDArray[np.int8]) -> npt.NDArray[np.int32] | None:
    """Return ``[inputs, outputs]`` as words ``[pairs, blocks, 2]`` of two inputs, two outputs each.

    A halfword is 256 times the weight of the first output plus that of the second: None where it
    does not fit. The words of a block of four inputs are its even ones, and its odd ones.
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
    """Return the numbers of pairs of outputs, as kernels of pairs want them."""
    bias = layer.bias.astype(np.int64).reshape(-1, 2)
    both = np.stack([256 * bias[:, 0] + bias[:, 1], bias[:, 1]], axis=1)
    each = epilogue.numbers(layer).reshape(-1, 4)
    return np.concatenate([both, each], axis=1).astype(np.uint32).view(np.int32)
