"""Depthwise convolutions of 3x3 with vectors, sixteen channels of a pixel at a time."""

import numpy as np

from tvm_serenity.firmware.integers import STATIC
from tvm_serenity.firmware.isa import Isa
from tvm_serenity.firmware.kernels.parts.calls import (
    Shape,
    geometry,
    initialiser,
    line_by_line,
    target,
    written,
)
from tvm_serenity.firmware.kernels.parts.counts import TYPES, case_of_type, of_pixels
from tvm_serenity.firmware.kernels.parts.layer import DEPTHWISE, LANES, RoundedConvolution
from tvm_serenity.firmware.kernels.parts.overlap import in_order
from tvm_serenity.firmware.kernels.parts.packing import outside
from tvm_serenity.firmware.kernels.record import KernelCall, LibraryKernel
from tvm_serenity.firmware.program import Array, Kernel

TWINS = 8
"""The number of channels of which two pixels fill a vector."""


def refuses(layer: RoundedConvolution) -> str:
    """Return why the kernel does not compute ``layer``, "" if it does."""
    if len(layer.spec.pieces) > 1 or layer.spec.pieces[0][3] != layer.spec.channels:
        return "supports only depthwise convolutions with one output per input"
    return (
        ""
        if layer.fits_3x3_mve
        else "supports only windows of 3x3 that are rounded twice, to all values of their type"
    )


def calls_of(name: str, layer: RoundedConvolution) -> list[KernelCall]:
    """Return the call for ``layer``."""
    return [KernelCall(depthwise(name, layer), (*pack(layer), *outside(layer)))]


def _twins(layer: RoundedConvolution) -> bool:
    """Return whether two consecutive pixels fill a vector."""
    return layer.spec.channels == TWINS and layer.spec.strides[1] == 1


def pack(layer: RoundedConvolution) -> tuple[Array, Array]:
    """Return weights ``[groups, 9, 16]``, and biases and requantisation ``[groups, 36]``."""
    channels = layer.spec.channels
    weights = layer.weights.reshape(9, channels)
    bias = layer.bias.astype(np.int64)
    if layer.spec.dtype == "uint8":
        bias = bias + 128 * weights.sum(axis=0, dtype=np.int64)
    given: tuple[Array, ...] = (bias, layer.rounding.multipliers, layer.rounding.shifts)
    each: list[Array] = [np.broadcast_to(a, (channels,)) for a in given]
    if _twins(layer):
        weights, each = np.tile(weights, 2), [np.tile(a, 2) for a in each]
    more = -weights.shape[1] % 16
    laid = np.pad(weights, ((0, 0), (0, more))).reshape(9, -1, 16).transpose(1, 0, 2)
    vectors = [np.pad(a, (0, more)).reshape(-1, 4, 4)[..., (0, 2, 1, 3)] for a in each]
    turned = [a.transpose(0, 2, 1).reshape(-1, 16) for a in vectors]
    shifts = np.ascontiguousarray(turned[2].astype(np.int8)).view(np.int32)
    words = [turned[0].astype(np.int32), turned[1].astype(np.int32), shifts]
    return np.ascontiguousarray(laid), np.concatenate(words, axis=1)


def depthwise(name: str, layer: RoundedConvolution) -> Kernel:
    """Return the C function of a depthwise convolution."""
    spec = layer.spec
    fields = {
        **geometry(spec),
        "channels": spec.channels,
        "pairs": layer.pairs,
        "to": target(layer),
    }
    positive = "_positive" if layer.clamps_at_zero else ""
    names, lines = line_by_line(
        layer, "depthwise_3x3_line", f"&d, depthwise_3x3{positive}_{layer.name}", "w, b, o"
    )
    first = f"{STATIC} depthwise_{layer.name} d = {initialiser(fields)};"
    takes = [("w", "int8"), ("b", "int32"), ("o", spec.dtype)]
    return written(name, layer, "depthwise_3x3_mve/kernel.h", Shape(names, takes), [first, *lines])


KERNEL = LibraryKernel(
    name="depthwise_3x3_mve",
    computes=DEPTHWISE,
    isa=frozenset({Isa.MVE}),
    refuses=refuses,
    calls=calls_of,
    passages=lambda layer, _options: in_order(layer, 2 if _twins(layer) else 1),
    cases=TYPES,
    case=case_of_type,
    counts=lambda layer, _options: of_pixels(layer, LANES, twins=True),
)
