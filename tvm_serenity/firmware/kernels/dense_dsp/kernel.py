"""Layers of one window, such as dense layers, for the DSP extension: four outputs at a time."""

import math

import numpy as np

from tvm_serenity.firmware.integers import STATIC, extent, integer
from tvm_serenity.firmware.isa import Isa
from tvm_serenity.firmware.kernels.pack import BLOCK
from tvm_serenity.firmware.kernels.parts import layer as limits
from tvm_serenity.firmware.kernels.parts.calls import Shape, target, written
from tvm_serenity.firmware.kernels.parts.counts import TYPES, RegisterTile, case_of_type, of_windows
from tvm_serenity.firmware.kernels.parts.epilogue import refusal
from tvm_serenity.firmware.kernels.parts.layer import (
    CONVOLUTION,
    RoundedConvolution,
    joined_rows,
)
from tvm_serenity.firmware.kernels.parts.overlap import no_overlap
from tvm_serenity.firmware.kernels.parts.packing import by_sources
from tvm_serenity.firmware.kernels.parts.pairs import pair_numbers, words_of
from tvm_serenity.firmware.kernels.record import KernelCall, LibraryKernel
from tvm_serenity.firmware.program import Array

FEW_PAIRS = 10
"""The least odd number of output pairs that is padded; padding fewer takes a tenth more flash."""
WIDENED_PRODUCTS = 4096
"""The least number of products with widened inputs; smaller layers take less code without."""
TILE = RegisterTile(windows=1, lines=1, outputs=4)


def refuses(layer: RoundedConvolution) -> str:
    """Return why the kernel does not compute ``layer``, "" if it does."""
    spec = layer.spec
    reads_all = len(spec.pieces) == 1 and math.prod(spec.pieces[0]) == layer.inputs
    follows = reads_all and not any(spec.padding) and not layer.inputs % BLOCK
    if not layer.alone or not follows or joined_rows(layer):
        return refusal(layer)
    words = words_of(layer, by_sources(layer))
    return refusal(layer) if words is None or (len(words) % 2 and len(words) < FEW_PAIRS) else ""


def calls_of(name: str, layer: RoundedConvolution) -> list[KernelCall]:
    """Return the call for ``layer``; zeros pad the last group of four outputs."""
    spec, dtype, inputs = layer.spec, layer.spec.dtype, layer.inputs
    twice = "positive" if layer.clamps_at_zero else "twice"
    rounding = "once" if layer.rounding.once_small else twice
    wide = 2 * inputs <= limits.STACK_BYTES and inputs * spec.channels >= WIDENED_PRODUCTS
    buffer = (
        f"wide, dense_tile_{rounding}_wide_{dtype}"
        if wide
        else f"NULL, dense_tile_{rounding}_{dtype}"
    )
    lines = [
        f"{STATIC} requantisation to = {target(layer)};",
        f"const int32_t outputs = {integer(spec.channels)};",
        *[f"int16_t wide[{extent(inputs)}] __attribute__((aligned(8)));"] * wide,
        f"dense_tiles_{dtype}(x0, w, q, out, {integer(inputs)}, outputs, &to, {buffer});",
    ]
    shape = Shape(["x0"], [("w", "int32"), ("q", "int32")])
    return [KernelCall(written(name, layer, "dense_dsp/kernel.h", shape, lines), pack(layer))]


def pack(layer: RoundedConvolution) -> tuple[Array, Array]:
    """Return the weights, two pairs of outputs at a time, and the requantisation of the pairs."""
    words = words_of(layer, by_sources(layer))
    assert words is not None, "a layer that is not refused"
    filled = [(0, len(words) % 2), (0, 0)]
    blocks = np.pad(words, [*filled, (0, 0)]).reshape(-(-len(words) // 2), 2, -1, 2)
    blocks = blocks.transpose(0, 2, 3, 1)
    return np.ascontiguousarray(blocks), np.pad(pair_numbers(layer), filled)


KERNEL = LibraryKernel(
    name="dense_dsp",
    computes=CONVOLUTION,
    isa=frozenset({Isa.DSP}),
    refuses=refuses,
    calls=calls_of,
    passages=lambda layer, _options: no_overlap(layer),
    cases=TYPES,
    case=case_of_type,
    counts=lambda layer, _options: of_windows(TILE, layer),
)
