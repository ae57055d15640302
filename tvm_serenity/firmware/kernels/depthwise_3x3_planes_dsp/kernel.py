"""Depthwise convolutions of 3x3 for the DSP extension: a plane per channel, two taps at a time."""

from tvm_serenity.firmware.isa import Isa
from tvm_serenity.firmware.kernels.parts import planes
from tvm_serenity.firmware.kernels.parts.counts import CASES_OF_STRIDE, case_of_stride
from tvm_serenity.firmware.kernels.parts.layer import DEPTHWISE, RoundedConvolution
from tvm_serenity.firmware.kernels.parts.overlap import by_channels
from tvm_serenity.firmware.kernels.record import KernelCall, LibraryKernel


def calls_of(name: str, layer: RoundedConvolution) -> list[KernelCall]:
    """Return the calls for ``layer``: with a plane of all rows, and with a ring of a few rows."""
    function = "plane_positive" if layer.clamps_at_zero else "plane_lines"
    return planes.calls_of(name, layer, planes.Lines("depthwise_3x3_planes_dsp/kernel.h", function))


KERNEL = LibraryKernel(
    name="depthwise_3x3_planes_dsp",
    computes=DEPTHWISE,
    isa=frozenset({Isa.DSP}),
    refuses=planes.refuses,
    calls=calls_of,
    passages=lambda layer, _options: by_channels(layer),
    cases=CASES_OF_STRIDE,
    case=case_of_stride,
    counts=planes.counts,
)
