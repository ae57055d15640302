"""Convolutions for the DSP extension: two outputs of two windows at a time, inputs not widened."""

from tvm_serenity.firmware.isa import Isa
from tvm_serenity.firmware.kernels.parts.counts import (
    TYPES,
    RegisterTile,
    case_of_windows,
    cases_of_windows,
    of_windows,
)
from tvm_serenity.firmware.kernels.parts.epilogue import refusal
from tvm_serenity.firmware.kernels.parts.layer import CONVOLUTION, RoundedConvolution
from tvm_serenity.firmware.kernels.parts.overlap import in_order
from tvm_serenity.firmware.kernels.parts.packing import by_sources
from tvm_serenity.firmware.kernels.parts.pairs import pair_numbers, words_of
from tvm_serenity.firmware.kernels.parts.two_windows import TileFunctions, by_windows, read
from tvm_serenity.firmware.kernels.record import KernelCall, LibraryKernel

TILE = RegisterTile(windows=2, lines=2, outputs=2)


def refuses(layer: RoundedConvolution) -> str:
    """Return why the kernel does not compute ``layer``, "" if it does."""
    words = words_of(layer, by_sources(layer))
    return refusal(layer) if words is None or layer.alone or not read(layer) else ""


def calls_of(name: str, layer: RoundedConvolution) -> list[KernelCall]:
    """Return the calls for ``layer``: windows read in place, and copied (im2col)."""
    words = words_of(layer, by_sources(layer))
    assert words is not None, "a layer that is not refused"
    once = layer.rounding.once_small
    functions = "2x2_positive" if layer.clamps_at_zero else "2x2"
    functions = "2x2_once" if once else functions
    core = TileFunctions(functions, "conv_2x2_dsp/kernel.h", words, pair_numbers(layer), once)
    return [by_windows(name, one, core) for one in read(layer)]


KERNEL = LibraryKernel(
    name="conv_2x2_dsp",
    computes=CONVOLUTION,
    isa=frozenset({Isa.DSP}),
    refuses=refuses,
    calls=calls_of,
    passages=lambda layer, _options: in_order(layer, 2),
    cases=cases_of_windows(TYPES),
    case=case_of_windows,
    counts=lambda layer, _options: of_windows(TILE, layer),
)
