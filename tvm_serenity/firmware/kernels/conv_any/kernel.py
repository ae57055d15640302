"""Convolutions on every core, two windows and two outputs at a time; weights of 4 or 8 bits."""

from tvm_serenity.firmware.integers import STATIC, extent
from tvm_serenity.firmware.isa import ANY
from tvm_serenity.firmware.kernels.pack import paired, paired_nibbles
from tvm_serenity.firmware.kernels.parts.calls import (
    Called,
    calls,
    columns,
    convolution_fields,
    convolving,
    most_runs,
    reader,
    written,
)
from tvm_serenity.firmware.kernels.parts.counts import (
    NARROW_TYPES,
    RegisterTile,
    case_of_windows,
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
from tvm_serenity.firmware.kernels.parts.packing import by_sources, gathering, with_room
from tvm_serenity.firmware.kernels.record import KernelCall, LibraryKernel
from tvm_serenity.firmware.program import Array, Kernel

TILE = RegisterTile(windows=2, lines=2, outputs=2)


def refuses(layer: RoundedConvolution) -> str:
    """Return why the kernel does not compute ``layer``, "" if it does."""
    reason = joined_rows(layer)
    if not reason and not read_as(layer, MOST_COLUMN_BYTES):
        return f"supports copies of windows by rows of at most {MOST_COLUMN_BYTES} bytes"
    return reason


def calls_of(name: str, layer: RoundedConvolution) -> list[KernelCall]:
    """Return the calls for ``layer``, except those that ``conv_mve`` has."""
    read = (one for one in read_as(layer, MOST_COLUMN_BYTES) if not one.grouped)
    return [gathering(one, convolution(name, one), pack(one)) for one in read]


def pack(layer: RoundedConvolution) -> Array:
    """Return the weights in blocks of four inputs of two outputs."""
    weights = by_sources(layer)
    return with_room(layer, paired_nibbles(weights) if layer.narrow else paired(weights))


def convolution(name: str, layer: RoundedConvolution) -> Kernel:
    """Return the C function of a convolution."""
    dtype, fields = layer.spec.dtype, convolution_fields(layer, reader(layer))
    gathered, declared = columns(layer, 2 * layer.depth * layer.gathers)
    held = "o" if layer.outside else "NULL"
    lines = [
        f"{STATIC} convolution_{dtype} c = {fields};",
        *declared,
        f"run_{dtype} runs[{extent(most_runs(layer))}];",
        f"const with_{dtype} with = {{w, b, m, r, {held}, {gathered}, runs}};",
    ]
    functions = (f"convolve_{layer.name}", f"convolve_lines_{layer.name}")
    names, made = calls(layer, Called(*functions, "&c, &with", 2, "(uint8_t *)out"))
    shape = convolving(layer, names, layer.gathers)
    return written(name, layer, "conv_any/kernel.h", shape, [*lines, *made])


KERNEL = LibraryKernel(
    name="conv_any",
    computes=CONVOLUTION,
    isa=ANY,
    refuses=refuses,
    calls=calls_of,
    passages=lambda layer, _options: in_order(layer, 2),
    cases=cases_of_windows(NARROW_TYPES),
    case=case_of_windows,
    counts=lambda layer, _options: of_windows(TILE, layer),
)
