"""Kernels of the library for cores without the DSP extension, and where they may be taken.

Inputs and weights are read byte by byte, four channels of two windows at a time: on Cortex-M3
(Thumb-2) as they are, on Cortex-M0, M0+ and M23 (Thumb-1) with weights of 128 more, whose bytes
have no sign. A layer that is refused takes the library's other kernels.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from tvm_serenity.firmware.program import Array
from tvm_serenity.firmware.tir import short
from tvm_serenity.firmware.tir.library import RoundedConvolution
from tvm_serenity.firmware.tir.short import Fast, WindowForm, by_windows, is_short, planes

GROUP = 4
"""Channels that are made together."""
LIFTED = 128
"""What Thumb-1 adds to bytes with a sign."""


def convolved(name: str, layer: RoundedConvolution, weights: Any, thumb: int) -> Fast | None:
    """Return the kernel of a convolution, None where there is none.

    ``weights`` ``[inputs, outputs]`` stand in the order in which windows are read; ``thumb``: which
    instruction set the core has.
    """
    if layer.narrow or not is_short(layer):
        return None
    file, more = ("lifted", LIFTED) if thumb == 1 else ("bytes", 0)
    alone = not layer.by_rows and layer.spec.output_shape[1:3] == (1, 1)
    once = layer.how.name == "ROUND_ONCE_SMALL"
    making = f"{file}{'_once' * once}{'_alone' * alone}"
    laid = in_fours(weights, layer.depth, more)
    core = WindowForm(making, ("finish.h", f"{file}.h"), laid, group_numbers(layer))
    return by_windows(name, layer, core)


def apart(name: str, layer: RoundedConvolution, thumb: int) -> list[Fast]:
    """Return the kernels of a depthwise convolution."""
    lifted = LIFTED if thumb == 1 and layer.spec.dtype == "int8" else 0
    return planes(name, layer, ("finish.h", "plane_taps.h"), lifted=lifted)


def in_fours(weights: npt.NDArray[np.int8], depth: int, more: int = 0) -> Array:
    """Return ``[inputs, outputs]`` plus ``more`` as ``[groups, depth, 4]``, 0 where there are none.

    Sums of 8 bits wrap around.
    """
    inputs, outputs = weights.shape
    full = np.zeros((depth, -(-outputs // GROUP) * GROUP), np.uint8)
    full[:inputs, :outputs] = weights.view(np.uint8)
    laid = (full + np.uint8(more)).reshape(depth, -1, GROUP).transpose(1, 0, 2)
    return np.ascontiguousarray(laid).view(np.int8)


def group_numbers(layer: RoundedConvolution) -> Array:
    """Return the numbers of groups ``[groups, 12]``: four biases, two numbers of each channel."""
    more = -layer.spec.channels % GROUP
    bias = np.pad(layer.bias.astype(np.int64), (0, more)).reshape(-1, GROUP)
    each = np.pad(short.numbers(layer), ((0, more), (0, 0))).reshape(-1, 2 * GROUP)
    return np.concatenate([bias, each], axis=1).astype(np.uint32).view(np.int32)
