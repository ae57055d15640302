"""Means of all pixels for the DSP extension: calls of ``library/averages.h``."""

from tvm_serenity.firmware.program import Kernel, Param
from tvm_serenity.firmware.tir.library import initialiser
from tvm_serenity.kernels.records import AveragePool

MOST_PIXELS = 255
"""So many inputs of 8 bits have sums of 16."""
FEW_INPUTS = 1024
"""Of fewer a kernel from TIR takes less code."""
LANES = 4
"""Channels that are summed up at a time."""


def average(name: str, spec: AveragePool) -> Kernel | None:
    """Return the kernel of a mean of all pixels of one image, None where the library has none."""
    images, height, width, channels = spec.shape
    pixels = height * width
    if spec.layout != "NHWC" or images != 1 or spec.requantise is not None:
        return None
    if spec.window != (height, width) or spec.output_shape[1:3] != (1, 1) or any(spec.padding):
        return None
    if pixels * channels < FEW_INPUTS:
        return None
    if spec.dtype not in ("int8", "uint8") or channels % LANES or pixels > MOST_PIXELS:
        return None
    fields = {"pixels": pixels, "channels": channels, "low": spec.low, "high": spec.high}
    body = (
        f"    static const averages_{spec.dtype} a = {initialiser(fields)};\n"
        f"    average_{spec.dtype}(&a, x, out);\n"
    )
    params = (Param("x", spec.dtype, True), Param("out", spec.dtype, False))
    return Kernel(name, params, body, ("requantise.h", f"averages.h:{spec.dtype}"))
