"""Convolutions for Thumb-1 (Cortex-M0, M0+, M23): weights are bytes without a sign, 128 more."""

from tvm_serenity.firmware.isa import Isa
from tvm_serenity.firmware.kernels.parts import fours
from tvm_serenity.firmware.kernels.parts.counts import TYPES, case_of_windows, cases_of_windows
from tvm_serenity.firmware.kernels.parts.layer import CONVOLUTION, RoundedConvolution
from tvm_serenity.firmware.kernels.parts.overlap import in_order
from tvm_serenity.firmware.kernels.record import KernelCall, LibraryKernel

LIFTED = 128
"""What weights are more than they are."""


def calls_of(name: str, layer: RoundedConvolution) -> list[KernelCall]:
    """Return its calls: windows read where they lie, and gathered."""
    return fours.calls_of(name, layer, "conv_2x4_thumb1/kernel.h", "lifted", LIFTED)


KERNEL = LibraryKernel(
    name="conv_2x4_thumb1",
    computes=CONVOLUTION,
    isa=frozenset({Isa.THUMB_1}),
    refuses=fours.refuses,
    calls=calls_of,
    passages=lambda layer, _options: in_order(layer, 2),
    cases=cases_of_windows(TYPES),
    case=case_of_windows,
    counts=fours.counts,
)
