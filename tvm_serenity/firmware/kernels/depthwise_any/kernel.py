"""Depthwise convolutions on every core, four or eight channels of a pixel at a time."""

from dataclasses import replace

from tvm_serenity.firmware.integers import STATIC
from tvm_serenity.firmware.isa import ANY
from tvm_serenity.firmware.kernels.pack import nibbles
from tvm_serenity.firmware.kernels.parts.calls import (
    Shape,
    geometry,
    initialiser,
    line_by_line,
    target,
    written,
)
from tvm_serenity.firmware.kernels.parts.counts import NARROW_TYPES, of_pixels
from tvm_serenity.firmware.kernels.parts.layer import (
    DEPTHWISE,
    MOST_ROWS,
    RoundedConvolution,
)
from tvm_serenity.firmware.kernels.parts.overlap import in_order
from tvm_serenity.firmware.kernels.parts.packing import numbers, outside
from tvm_serenity.firmware.kernels.record import KernelCall, LibraryKernel
from tvm_serenity.firmware.program import Kernel

MOST_TAPS = 49
LANES = 4
"""Channels that are computed at a time."""


def refuses(layer: RoundedConvolution) -> str:
    """Return why the kernel does not compute ``layer``, "" if it does."""
    spec = layer.spec
    kh, kw, channels = spec.weight_shape
    if len(spec.pieces) * kh > MOST_ROWS:
        return f"supports only windows of at most {MOST_ROWS} rows"
    if len(spec.pieces) > 1 or spec.pieces[0][3] != channels or kh * kw > MOST_TAPS:
        return f"supports only depthwise windows of at most {MOST_TAPS} taps, one output per input"
    return ""


def calls_of(name: str, layer: RoundedConvolution) -> list[KernelCall]:
    """Return the call for ``layer``; none if ``depthwise_3x3_mve`` computes it."""
    layer = replace(layer, narrow=_packs(layer))
    if layer.fits_3x3_mve:
        return []
    weights = nibbles(layer.weights) if layer.narrow else layer.weights
    return [KernelCall(depthwise(name, layer), (weights, *numbers(layer), *outside(layer)))]


def _packs(layer: RoundedConvolution) -> bool:
    """Return whether two weights share a byte."""
    return layer.narrow and layer.spec.channels % 2 == 0


def depthwise(name: str, layer: RoundedConvolution) -> Kernel:
    """Return the C function of a depthwise convolution."""
    spec = layer.spec
    fields = {
        **geometry(spec),
        "channels": spec.channels,
        "pairs": layer.pairs,
        "to": target(layer),
    }
    names, lines = line_by_line(layer, "depthwise_line", "&d", "w, b, m, r, o")
    first = f"{STATIC} depthwise_{layer.name} d = {initialiser(fields)};"
    takes = [("w", "int8"), ("b", "int32"), ("m", "int32"), ("r", "int8"), ("o", spec.dtype)]
    return written(name, layer, "depthwise_any/kernel.h", Shape(names, takes), [first, *lines])


KERNEL = LibraryKernel(
    name="depthwise_any",
    computes=DEPTHWISE,
    isa=ANY,
    refuses=refuses,
    calls=calls_of,
    passages=lambda layer, _options: in_order(layer, 1),
    cases=NARROW_TYPES,
    case=lambda layer, _options: replace(layer, narrow=_packs(layer)).name,
    counts=lambda layer, _options: of_pixels(layer, LANES),
)
