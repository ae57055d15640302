"""Convolutions, four outputs of two windows at a time, for cores without the DSP extension."""

import numpy as np
import numpy.typing as npt

from tvm_serenity.firmware.isa import Isa
from tvm_serenity.firmware.kernels.parts import epilogue
from tvm_serenity.firmware.kernels.parts.counts import (
    TYPES,
    RegisterTile,
    case_of_windows,
    cases_of_windows,
    of_windows,
)
from tvm_serenity.firmware.kernels.parts.epilogue import is_short, refusal
from tvm_serenity.firmware.kernels.parts.layer import CONVOLUTION, RoundedConvolution
from tvm_serenity.firmware.kernels.parts.overlap import in_order
from tvm_serenity.firmware.kernels.parts.packing import by_sources
from tvm_serenity.firmware.kernels.parts.two_windows import TileFunctions, by_windows, read
from tvm_serenity.firmware.kernels.record import KernelCall, KernelOptions, LibraryKernel
from tvm_serenity.firmware.program import Array

GROUP = 4
"""Channels that are computed together."""
TILE = RegisterTile(windows=2, lines=2, outputs=GROUP)


def refuses(layer: RoundedConvolution) -> str:
    """Return why the kernels do not compute ``layer``, "" if they do."""
    return refusal(layer) if layer.narrow or not is_short(layer) or not read(layer) else ""


def kernel(name: str, isa: frozenset[Isa], functions: str, offset: int) -> LibraryKernel:
    """Return the record of the kernel in the folder ``name``.

    ``functions``: the name of the C functions in its file that compute the channels. ``offset`` is
    added to the weights.
    """
    file = f"{name}/kernel.h"
    return LibraryKernel(
        name=name,
        computes=CONVOLUTION,
        isa=isa,
        refuses=refuses,
        calls=lambda kernel_name, layer: calls_of(kernel_name, layer, file, functions, offset),
        passages=lambda layer, _options: in_order(layer, 2),
        cases=cases_of_windows(TYPES),
        case=case_of_windows,
        counts=counts,
    )


def calls_of(
    name: str, layer: RoundedConvolution, file: str, functions: str, offset: int
) -> list[KernelCall]:
    """Return the calls for ``layer``: windows read in place, and copied (im2col)."""
    once = layer.rounding.once_small
    functions += "_once" * once + "_alone" * layer.alone
    laid = grouped_weights(by_sources(layer), layer.depth, offset)
    core = TileFunctions(functions, file, laid, group_numbers(layer), once)
    return [by_windows(name, one, core) for one in read(layer)]


def counts(layer: RoundedConvolution, _options: KernelOptions) -> list[float]:
    """Return the counts of the kernel's work for ``layer``, in the order of its prices."""
    return of_windows(TILE, layer)


def grouped_weights(weights: npt.NDArray[np.int8], depth: int, offset: int = 0) -> Array:
    """Return ``[inputs, outputs]`` plus ``offset`` as ``[groups, depth, 4]``, padded with 0.

    The 8-bit sums wrap around.
    """
    inputs, outputs = weights.shape
    full = np.zeros((depth, -(-outputs // GROUP) * GROUP), np.uint8)
    full[:inputs, :outputs] = weights.view(np.uint8)
    laid = (full + np.uint8(offset)).reshape(depth, -1, GROUP).transpose(1, 0, 2)
    return np.ascontiguousarray(laid).view(np.int8)


def group_numbers(layer: RoundedConvolution) -> Array:
    """Return ``[groups, 12]`` words: four biases, then the requantisation of each channel."""
    more = -layer.spec.channels % GROUP
    bias = np.pad(layer.bias.astype(np.int64), (0, more)).reshape(-1, GROUP)
    each = np.pad(epilogue.numbers(layer), ((0, more), (0, 0))).reshape(-1, 2 * GROUP)
    return np.concatenate([bias, each], axis=1).astype(np.uint32).view(np.int32)
