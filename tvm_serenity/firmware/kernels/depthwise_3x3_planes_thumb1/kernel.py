"""Depthwise convolutions of 3x3 for Thumb-1 (Cortex-M0, M0+, M23): a plane per channel."""

from tvm_serenity.firmware.isa import Isa
from tvm_serenity.firmware.kernels.parts import planes
from tvm_serenity.firmware.kernels.parts.counts import CASES_OF_STRIDE, case_of_stride
from tvm_serenity.firmware.kernels.parts.layer import DEPTHWISE, RoundedConvolution
from tvm_serenity.firmware.kernels.parts.overlap import by_channels
from tvm_serenity.firmware.kernels.record import KernelCall, LibraryKernel

INPUT_OFFSET = 128
"""The offset that is added to signed inputs: Thumb-1 loads unsigned bytes only."""


def calls_of(name: str, layer: RoundedConvolution) -> list[KernelCall]:
    """Return the calls for ``layer``: with a plane of all rows, and with a ring of a few rows."""
    offset = INPUT_OFFSET if layer.spec.dtype == "int8" else 0
    making = planes.Lines("depthwise_3x3_planes_thumb1/kernel.h", "plane_lines", offset)
    return planes.calls_of(name, layer, making)


KERNEL = LibraryKernel(
    name="depthwise_3x3_planes_thumb1",
    computes=DEPTHWISE,
    isa=frozenset({Isa.THUMB_1}),
    refuses=planes.refuses,
    calls=calls_of,
    passages=lambda layer, _options: by_channels(layer),
    cases=CASES_OF_STRIDE,
    case=case_of_stride,
    counts=planes.counts,
)
