"""Means of all pixels for the DSP extension, four channels at a time."""

from tvm_serenity.firmware.integers import STATIC
from tvm_serenity.firmware.isa import Isa
from tvm_serenity.firmware.kernels.parts.calls import initialiser
from tvm_serenity.firmware.kernels.parts.counts import TYPES
from tvm_serenity.firmware.kernels.parts.layer import PlainLayer
from tvm_serenity.firmware.kernels.record import KernelCall, KernelOptions, LibraryKernel, Passages
from tvm_serenity.firmware.passage import Passage
from tvm_serenity.firmware.program import Kernel, LibraryFile, Param

MOST_PIXELS = 255
"""The number of 8-bit inputs whose sum fits into 16 bits."""
FEW_INPUTS = 1024
"""The least number of inputs; below, a kernel from TIR takes less code."""
LANES = 4
"""Channels that are summed at a time."""


def refuses(layer: PlainLayer) -> str:
    """Return why the kernel does not compute ``layer``, "" if it does."""
    spec = layer.spec
    images, height, width, channels = spec.shape
    global_mean = spec.window == (height, width) and spec.output_shape[1:3] == (1, 1)
    of_one = spec.layout == "NHWC" and images == 1 and spec.requantise is None
    if not global_mean or not of_one or any(spec.padding) or layer.by_rows:
        return "supports only means of all pixels of one image"
    if layer.products < FEW_INPUTS or height * width > MOST_PIXELS:
        return (
            f"supports only means of up to {MOST_PIXELS} pixels and {FEW_INPUTS:,} inputs or more"
        )
    known = spec.dtype in TYPES and channels % LANES == 0
    return (
        "" if known else f"supports only means of 8-bit integers with multiples of {LANES} channels"
    )


def calls_of(name: str, layer: PlainLayer) -> list[KernelCall]:
    """Return the call for ``layer``."""
    spec = layer.spec
    _, height, width, channels = spec.shape
    fields = {"pixels": height * width, "channels": channels, "low": spec.low, "high": spec.high}
    body = (
        f"    {STATIC} averages_{spec.dtype} a = {initialiser(fields)};\n"
        f"    average_{spec.dtype}(&a, x, out);\n"
    )
    params = (Param("x", spec.dtype, True), Param("out", spec.dtype, False))
    file = LibraryFile("mean_dsp/kernel.h", spec.dtype)
    return [KernelCall(Kernel(name, params, body, (file,)), ())]


def passages(layer: PlainLayer, _options: KernelOptions) -> Passages:
    """Return the passage: a channel is written once all of its pixels are read."""
    _, height, width, channels = layer.shape
    window = (height, width)
    return (Passage(height, width, channels, 1, 1, channels, window, planes=True),)


def counts(layer: PlainLayer, _options: KernelOptions) -> list[float]:
    """Return the counts of calls, channel groups, and channel groups of all pixels."""
    _, height, width, channels = layer.shape
    groups = channels // LANES
    return [1, groups, groups * height * width]


KERNEL = LibraryKernel(
    name="mean_dsp",
    computes="AveragePool",
    isa=frozenset({Isa.DSP}),
    refuses=refuses,
    calls=calls_of,
    passages=passages,
    cases=TYPES,
    case=lambda layer, _options: str(layer.spec.dtype),
    counts=counts,
)
