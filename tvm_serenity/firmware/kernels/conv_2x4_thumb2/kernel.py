"""Convolutions for Thumb-2 without extensions (Cortex-M3): inputs and weights byte by byte."""

from tvm_serenity.firmware.isa import Isa
from tvm_serenity.firmware.kernels.parts import tile_2x4
from tvm_serenity.firmware.kernels.parts.counts import TYPES, case_of_windows, cases_of_windows
from tvm_serenity.firmware.kernels.parts.layer import CONVOLUTION, RoundedConvolution
from tvm_serenity.firmware.kernels.parts.overlap import in_order
from tvm_serenity.firmware.kernels.record import KernelCall, LibraryKernel


def calls_of(name: str, layer: RoundedConvolution) -> list[KernelCall]:
    """Return the calls for ``layer``: windows read in place, and copied (im2col)."""
    return tile_2x4.calls_of(name, layer, "conv_2x4_thumb2/kernel.h", "bytes", 0)


KERNEL = LibraryKernel(
    name="conv_2x4_thumb2",
    computes=CONVOLUTION,
    isa=frozenset({Isa.THUMB_2}),
    refuses=tile_2x4.refuses,
    calls=calls_of,
    passages=lambda layer, _options: in_order(layer, 2),
    cases=cases_of_windows(TYPES),
    case=case_of_windows,
    counts=tile_2x4.counts,
)
