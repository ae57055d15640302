"""Four outputs of two windows at a time, byte by byte, for cores without the DSP extension."""

import numpy as np
import numpy.typing as npt

from tvm_serenity.firmware.kernels.parts import epilogue
from tvm_serenity.firmware.kernels.parts.counts import RegisterTile, of_windows
from tvm_serenity.firmware.kernels.parts.epilogue import is_short, refusal
from tvm_serenity.firmware.kernels.parts.layer import RoundedConvolution
from tvm_serenity.firmware.kernels.parts.packing import by_sources
from tvm_serenity.firmware.kernels.parts.two_windows import Making, by_windows, read
from tvm_serenity.firmware.kernels.record import KernelCall, KernelOptions
from tvm_serenity.firmware.program import Array

GROUP = 4
"""Channels that are made together."""
TILE = RegisterTile(windows=2, lines=2, outputs=GROUP)


def refuses(layer: RoundedConvolution) -> str:
    """Return why a layer is not made by fours."""
    return refusal(layer) if layer.narrow or not is_short(layer) or not read(layer) else ""


def calls_of(
    name: str, layer: RoundedConvolution, file: str, making: str, more: int
) -> list[KernelCall]:
    """Return the calls of a convolution: windows read where they lie, and gathered.

    ``making``: what makes the channels, in a ``file``; weights are ``more`` than they are.
    """
    once = layer.rounding.once_small
    making += "_once" * once + "_alone" * layer.alone
    laid = in_fours(by_sources(layer), layer.depth, more)
    core = Making(making, file, laid, group_numbers(layer), once)
    return [by_windows(name, one, core) for one in read(layer)]


def counts(layer: RoundedConvolution, _options: KernelOptions) -> list[float]:
    """Return the counts of its work."""
    return of_windows(TILE, layer)


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
    each = np.pad(epilogue.numbers(layer), ((0, more), (0, 0))).reshape(-1, 2 * GROUP)
    return np.concatenate([bias, each], axis=1).astype(np.uint32).view(np.int32)
