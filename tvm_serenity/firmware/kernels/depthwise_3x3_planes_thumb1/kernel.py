"""Depthwise convolutions of 3x3 for Thumb-1 (Cortex-M0, M0+, M23): a plane per channel."""

from tvm_serenity.firmware.isa import Isa
from tvm_serenity.firmware.kernels.parts import planes
from tvm_serenity.firmware.kernels.parts.layer import RoundedConvolution

INPUT_OFFSET = 128
"""The offset that is added to signed inputs: Thumb-1 loads unsigned bytes only."""


def lines_of(layer: RoundedConvolution) -> planes.Lines:
    """Return the C function that computes lines of ``layer`` from a plane."""
    offset = INPUT_OFFSET if layer.spec.dtype == "int8" else 0
    return planes.Lines("depthwise_3x3_planes_thumb1/kernel.h", "plane_lines", offset)


KERNEL = planes.kernel("depthwise_3x3_planes_thumb1", frozenset({Isa.THUMB_1}), lines_of)
