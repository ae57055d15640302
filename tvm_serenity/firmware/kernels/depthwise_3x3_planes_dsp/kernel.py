"""Depthwise convolutions of 3x3 for the DSP extension: a plane per channel, two taps at a time."""

from tvm_serenity.firmware.isa import Isa
from tvm_serenity.firmware.kernels.parts import planes
from tvm_serenity.firmware.kernels.parts.layer import RoundedConvolution


def lines_of(layer: RoundedConvolution) -> planes.Lines:
    """Return the C function that computes lines of ``layer`` from a plane."""
    function = "plane_positive" if layer.clamps_at_zero else "plane_lines"
    return planes.Lines("depthwise_3x3_planes_dsp/kernel.h", function)


KERNEL = planes.kernel("depthwise_3x3_planes_dsp", frozenset({Isa.DSP}), lines_of)
