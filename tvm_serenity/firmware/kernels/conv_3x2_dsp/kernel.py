"""Convolutions for the DSP extension: two outputs of three windows, inputs widened to 16 bits."""

from typing import Any

import numpy as np

from tvm_serenity.firmware.integers import STATIC, extent, integer
from tvm_serenity.firmware.isa import Isa
from tvm_serenity.firmware.kernels.pack import BLOCK
from tvm_serenity.firmware.kernels.parts import layer as limits
from tvm_serenity.firmware.kernels.parts import pairs
from tvm_serenity.firmware.kernels.parts.calls import (
    Called,
    Shape,
    calls,
    convolution_fields,
    written,
)
from tvm_serenity.firmware.kernels.parts.counts import (
    TYPES,
    RegisterTile,
    case_of_windows,
    cases_of_windows,
    of_windows,
)
from tvm_serenity.firmware.kernels.parts.epilogue import refusal
from tvm_serenity.firmware.kernels.parts.layer import (
    CONVOLUTION,
    RoundedConvolution,
    joined_rows,
)
from tvm_serenity.firmware.kernels.parts.overlap import in_order
from tvm_serenity.firmware.kernels.parts.packing import by_sources, zeros
from tvm_serenity.firmware.kernels.record import KernelCall, KernelOptions, LibraryKernel
from tvm_serenity.firmware.program import Array

TILE = RegisterTile(windows=3, lines=3, outputs=2)


def refuses(layer: RoundedConvolution) -> str:
    """Return why the kernel does not compute ``layer``, "" if it does."""
    dilated = _ragged(layer) and layer.spec.dilation[1] != 1
    none = joined_rows(layer) or pairs.words_of(layer, by_sources(layer)) is None
    return refusal(layer) if none or layer.alone or dilated else ""


def calls_of(name: str, layer: RoundedConvolution) -> list[KernelCall]:
    """Return the call for ``layer``; widened inputs that exceed the stack lie in workspace."""
    spec, dtype = layer.spec, layer.spec.dtype
    wide_bytes = layer.depth * 6
    on_stack = wide_bytes <= limits.STACK_BYTES
    rows = [spec.weight_shape[1] * shape[3] for shape in spec.pieces]
    ragged = _ragged(layer)
    outside = max(rows) if any(spec.padding) else 0
    tail = 3 * spec.weight_shape[0] * sum(row // BLOCK * BLOCK for row in rows)
    once = len(rows) == 1 and spec.dilation[0] == 1 and spec.strides[0] < layer.sources
    onwards = spec.strides[0] if once else layer.sources
    flat = "true" if layer.plain and not ragged else "false"
    aligned = len(rows) == 1 or not ragged
    lined = "true" if aligned and spec.dilation[1] == 1 else "false"
    held = f"int16_t wide[{extent(wide_bytes // 2)}] __attribute__((aligned(8)));"
    twice = "positive" if layer.clamps_at_zero else "twice"
    three = f"tile_3x2_{'once' if layer.rounding.once_small else twice}_{dtype}"
    zero = "o" if outside else "NULL"
    line = f"widen_{'line' if len(rows) == 1 else 'pieces'}_{dtype}"
    values = f"{integer(tail)}, {flat}, {lined}, {integer(onwards)}, {line}, {three}"
    lines = [
        f"{STATIC} convolution_{dtype} c = {convolution_fields(layer)};",
        held if on_stack else "int16_t *const wide = (int16_t *)(void *)workspace;",
        f"{STATIC} three_windows_form_{dtype} how = {{{values}}};",
        f"const three_windows_{dtype} t = {{&c, &how, w, {zero}, wide}};",
    ]
    functions = (f"convolve_three_windows_{dtype}", f"convolve_three_windows_lines_{dtype}")
    entry = Called(*functions, "&t", 3, rows=layer.sources + 2 * onwards)
    names, called = calls(layer, entry)
    words, workspace = pack(layer), 0 if on_stack else wide_bytes
    takes = [("w", str(words.dtype)), *[("o", dtype)] * (outside > 0)]
    shape = Shape(names, takes, layer.by_rows and layer.plain, workspace > 0)
    kernel = written(name, layer, "conv_3x2_dsp/kernel.h", shape, [*lines, *called])
    return [
        KernelCall(
            kernel,
            (words, *[zeros(layer, outside)] * (outside > 0)),
            workspace,
            KernelOptions(once=layer.rounding.once_small),
        )
    ]


def _ragged(layer: RoundedConvolution) -> bool:
    """Return whether the channels of a piece are not a multiple of the block size."""
    return any(shape[3] % BLOCK for shape in layer.spec.pieces)


def pack(layer: RoundedConvolution) -> Array:
    """Return biases, weights and requantisation of each pair of outputs, as one array of words."""
    words = pairs.paired_words(blocks_first(layer, by_sources(layer)))
    assert words is not None, "the same weights in another order"
    numbers = pairs.pair_numbers(layer)
    return np.concatenate([numbers[:, :2], words.reshape(len(words), -1), numbers[:, 2:]], axis=1)


def blocks_first(layer: RoundedConvolution, weights: Any) -> Any:
    """Return ``weights`` with the remainders of the rows of a window after all full blocks.

    A block of four inputs has its even inputs first; the remainders are arranged so that the
    kernel reads them in their own order.
    """
    blocks: list[int] = []
    left: list[int] = []
    begin = 0
    for shape in layer.spec.pieces:
        for _ in range(layer.spec.weight_shape[0]):
            end = begin + layer.spec.weight_shape[1] * shape[3]
            middle = end - (end - begin) % BLOCK
            blocks += range(begin, middle)
            left += range(middle, end)
            begin = end
    tail = np.zeros((-(-len(left) // BLOCK) * BLOCK, weights.shape[1]), weights.dtype)
    at = np.arange(len(left))
    tail[at // BLOCK * BLOCK + np.array([0, 2, 1, 3])[at % BLOCK]] = weights[left]
    return np.concatenate([weights[blocks], tail])


KERNEL = LibraryKernel(
    name="conv_3x2_dsp",
    computes=CONVOLUTION,
    isa=frozenset({Isa.DSP}),
    refuses=refuses,
    calls=calls_of,
    passages=lambda layer, _options: in_order(layer, 3),
    cases=cases_of_windows(TYPES, reads=("",)),
    case=case_of_windows,
    counts=lambda layer, _options: of_windows(TILE, layer),
)
