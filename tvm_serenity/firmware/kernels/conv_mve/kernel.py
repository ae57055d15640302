"""Convolutions with vectors: four outputs of up to three windows at a time."""

from tvm_serenity.firmware.integers import STATIC, extent
from tvm_serenity.firmware.isa import Isa
from tvm_serenity.firmware.kernels.pack import in_groups
from tvm_serenity.firmware.kernels.parts.calls import (
    Called,
    calls,
    columns,
    convolution_fields,
    convolving,
    most_runs,
    written,
)
from tvm_serenity.firmware.kernels.parts.counts import (
    TYPES,
    RegisterTile,
    case_of_windows,
    cases_of,
    cases_of_windows,
    of_windows,
)
from tvm_serenity.firmware.kernels.parts.layer import (
    CONVOLUTION,
    MOST_COLUMN_BYTES,
    RoundedConvolution,
    joined_rows,
    read_as,
)
from tvm_serenity.firmware.kernels.parts.overlap import in_order
from tvm_serenity.firmware.kernels.parts.packing import by_sources, gathering
from tvm_serenity.firmware.kernels.record import KernelCall, KernelOptions, LibraryKernel, Passages
from tvm_serenity.firmware.program import Array, Kernel

IN_PLACE, GATHERED = (
    RegisterTile(windows=3, lines=3, outputs=4),
    RegisterTile(windows=2, lines=3, outputs=4),
)
NEVER = cases_of(("gathered",), ("plain",), TYPES)
"""Cases that do not occur: single pixels of one tensor are read in place."""


def calls_of(name: str, layer: RoundedConvolution) -> list[KernelCall]:
    """Return the calls for ``layer``: windows read in place, and copied (im2col)."""
    return [
        gathering(one, convolution(name, one), pack(one))
        for one in read_as(layer, MOST_COLUMN_BYTES)
        if one.grouped
    ]


def pack(layer: RoundedConvolution) -> Array:
    """Return the weights in blocks of 16 inputs of four outputs; each run begins a block."""
    weights = by_sources(layer)
    runs = [weights.shape[0]] if layer.gathers else layer.stretches
    return in_groups(weights, runs, 128 if layer.spec.dtype == "uint8" else 0)


def convolution(name: str, layer: RoundedConvolution) -> Kernel:
    """Return the C function of a convolution."""
    dtype = layer.spec.dtype
    gathered, declared = columns(layer, 2 * layer.depth * layer.gathers)
    held = "o" if layer.outside else "NULL"
    lines = [
        f"{STATIC} convolution_{dtype} c = {convolution_fields(layer)};",
        *declared,
        f"group_run_{layer.name} runs[{extent(most_runs(layer) + 1)}];",
        f"const with_{dtype} with = {{w, b, m, r, {held}, {gathered}, NULL}};",
    ]
    called = Called(
        f"convolve_groups_{layer.name}",
        f"convolve_lines_groups_{layer.name}",
        f"&c, &with, runs, READ_{_read(layer)}_{layer.name}",
        3,
        "(uint8_t *)out",
    )
    names, made = calls(layer, called)
    shape = convolving(layer, names, layer.gathers)
    return written(name, layer, "conv_mve/kernel.h", shape, [*lines, *made])


def _read(layer: RoundedConvolution) -> str:
    if layer.gathers:
        return "GATHERED"
    return "PLAIN" if layer.plain and len(layer.spec.pieces) == 1 else "IN_PLACE"


def passages(layer: RoundedConvolution, options: KernelOptions) -> Passages:
    """Return the passages: tiles of three consecutive windows, or one window in each of 3 lines."""
    below = not (layer.by_rows or layer.plain or options.gathered)
    lines = 3 * layer.spec.output_shape[2] if below and layer.spec.dilation[1] == 1 else 3
    return in_order(layer, lines)


KERNEL = LibraryKernel(
    name="conv_mve",
    computes=CONVOLUTION,
    isa=frozenset({Isa.MVE}),
    refuses=joined_rows,
    calls=calls_of,
    passages=passages,
    cases=tuple(case for case in cases_of_windows(TYPES) if case not in NEVER),
    case=case_of_windows,
    counts=lambda layer, options: of_windows(GATHERED if options.gathered else IN_PLACE, layer),
)
