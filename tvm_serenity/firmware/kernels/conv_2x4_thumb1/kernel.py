"""Convolutions for Thumb-1 (Cortex-M0, M0+, M23): weights are unsigned bytes, 128 is added."""

from tvm_serenity.firmware.isa import Isa
from tvm_serenity.firmware.kernels.parts import tile_2x4
from tvm_serenity.firmware.kernels.parts.counts import TYPES, case_of_windows, cases_of_windows
from tvm_serenity.firmware.kernels.parts.layer import CONVOLUTION, RoundedConvolution
from tvm_serenity.firmware.kernels.parts.overlap import in_order
from tvm_serenity.firmware.kernels.record import KernelCall, LibraryKernel

WEIGHT_OFFSET = 128
"""The offset that is added to weights: Thumb-1 loads unsigned bytes only."""


def calls_of(name: str, layer: RoundedConvolution) -> list[KernelCall]:
    """Return the calls for ``layer``: windows read in place, and copied (im2col)."""
    return tile_2x4.calls_of(name, layer, "conv_2x4_thumb1/kernel.h", "unsigned", WEIGHT_OFFSET)


KERNEL = LibraryKernel(
    name="conv_2x4_thumb1",
    computes=CONVOLUTION,
    isa=frozenset({Isa.THUMB_1}),
    refuses=tile_2x4.refuses,
    calls=calls_of,
    passages=lambda layer, _options: in_order(layer, 2),
    cases=cases_of_windows(TYPES),
    case=case_of_windows,
    counts=tile_2x4.counts,
)
