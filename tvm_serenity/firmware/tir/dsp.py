"""Kernels of the library for the DSP extension (Cortex-M4, M7, M33), and where they may be taken.

All of them requantise in five instructions, or in four where results below their zero point are
clamped to it, whichever way they round; convolutions read two weights in a halfword. What they need
is shown here for each layer from its weights, biases and multipliers; a layer that is refused
takes the library's other kernels.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tvm_serenity.firmware.pack import BLOCK
from tvm_serenity.firmware.program import Array, Kernel, Param
from tvm_serenity.firmware.tir import library, short
from tvm_serenity.firmware.tir.direct import direct
from tvm_serenity.firmware.tir.library import RoundedConvolution
from tvm_serenity.firmware.tir.short import (
    Fast,
    LibraryText,
    WindowForm,
    by_windows,
    called,
    is_short,
    largest,
    planes,
    written_out,
    zeros,
)

FIRST_SUMS = 1 << 23
"""Sums of the first output of a pair are below this: the difference that holds them has 24 bits."""

FEW_PAIRS = 10
"""Pairs of outputs from which an odd number is filled up: of fewer it takes a tenth more flash."""
WIDENED_PRODUCTS = 4096
"""Of a dense layer, from which its inputs are widened first: fewer take less code as they lie."""


def convolved(name: str, layer: RoundedConvolution, weights: Any) -> Fast | None:
    """Return the kernel of a convolution that reads windows as the layer says, if there is one.

    ``weights`` ``[inputs, outputs]`` stand in the order in which windows are read.
    """
    words = _words(layer, weights)
    if words is None:
        return None
    if _alone(layer):
        return _quads(name, layer, words)
    if layer.how.name != "ROUND_TWICE_SMALL":
        return None
    making = "twos_positive" if layer.clamps_at_zero else "twos"
    core = WindowForm(making, ("twos.h",), words, _pair_numbers(layer))
    return by_windows(name, layer, core)


def widened(name: str, layer: RoundedConvolution, weights: Any) -> Fast | None:
    """Return the kernel of a convolution that widens its inputs, None where there is none."""
    if _words(layer, weights) is None or _alone(layer) or layer.how.name != "ROUND_TWICE_SMALL":
        return None
    return _triples(name, layer, weights)


def _words(layer: RoundedConvolution, weights: Any) -> npt.NDArray[np.int32] | None:
    """The weights in words, None where the layer has no kernel for the DSP extension."""
    words = paired_words(weights)
    if words is None or not is_short(layer) or layer.spec.channels % 2 or layer.narrow:
        return None
    return None if int(largest(layer)[::2].max(initial=0)) >= FIRST_SUMS else words


def _alone(layer: RoundedConvolution) -> bool:
    """Whether a layer has one window."""
    return not layer.by_rows and layer.spec.output_shape[1:3] == (1, 1)


def apart(name: str, layer: RoundedConvolution) -> list[Fast]:
    """Return the kernels of a depthwise convolution."""
    function = "plane_positive" if layer.clamps_at_zero else "plane_lines"
    found = planes(name, layer, ("plane_pairs.h",), function=function)
    in_place = direct(name, layer)
    return [*found, *([in_place] if in_place else [])]


def paired_words(weights: npt.NDArray[np.int8]) -> npt.NDArray[np.int32] | None:
    """Return ``[inputs, outputs]`` as words ``[pairs, blocks, 2]`` of two inputs, two outputs each.

    A halfword is 256 times the weight of the first output plus that of the second: None where it
    does not fit. The words of a block of four inputs are its even ones, and its odd ones.
    """
    inputs, outputs = weights.shape
    full = np.zeros((-(-inputs // BLOCK) * BLOCK, -(-outputs // 2) * 2), np.int64)
    full[:inputs, :outputs] = weights
    both = 256 * full[:, ::2] + full[:, 1::2]
    if both.size and (both.min() < -(1 << 15) or both.max() >= 1 << 15):
        return None
    blocks = both.reshape(-1, 2, 2, both.shape[1]).astype("<i2")
    return np.ascontiguousarray(blocks.transpose(3, 0, 2, 1)).view("<i4")[..., 0]


def _pair_numbers(layer: RoundedConvolution) -> Array:
    """The numbers of pairs of outputs, as ``twos.h`` wants them."""
    bias = layer.bias.astype(np.int64).reshape(-1, 2)
    both = np.stack([256 * bias[:, 0] + bias[:, 1], bias[:, 1]], axis=1)
    each = short.numbers(layer).reshape(-1, 4)
    return np.concatenate([both, each], axis=1).astype(np.uint32).view(np.int32)


def _triples(name: str, layer: RoundedConvolution, weights: Any) -> Fast | None:
    """Three windows at a time; their widened inputs lie on the stack, or else in workspace."""
    spec, dtype = layer.spec, layer.spec.dtype
    room = layer.depth * 6
    on_stack = room <= short.STACK_BYTES
    rows = [spec.weight_shape[1] * shape[3] for shape in spec.pieces]
    ragged = any(shape[3] % BLOCK for shape in spec.pieces)
    if ragged and spec.dilation[1] != 1:
        return None
    outside = max(rows) if any(spec.padding) else 0
    tail = 3 * spec.weight_shape[0] * sum(row // BLOCK * BLOCK for row in rows)
    once = len(rows) == 1 and spec.dilation[0] == 1 and spec.strides[0] < layer.sources
    onwards = spec.strides[0] if once else layer.sources
    flat = "true" if layer.plain and not ragged else "false"
    apart = len(rows) == 1 or not ragged
    lined = "true" if apart and spec.dilation[1] == 1 else "false"
    held = f"int16_t wide[{room // 2}] __attribute__((aligned(8)));"
    three = f"three_{'positive' if layer.clamps_at_zero else 'windows'}_{dtype}"
    zero = "o" if outside else "NULL"
    line = f"widen_{'line' if len(rows) == 1 else 'pieces'}_{dtype}"
    how = f"{tail}, {flat}, {lined}, {onwards}, {line}, {three}"
    lines = [
        f"static const convolution_{dtype} c = {library.convolution_fields(layer)};",
        held if on_stack else "int16_t *const wide = (int16_t *)(void *)workspace;",
        f"static const tripled_{dtype} how = {{{how}}};",
        f"const triples_{dtype} t = {{&c, &how, w, {zero}, wide}};",
    ]
    made = replace(called("convolve_triples", dtype, 3), rows=layer.sources + 2 * onwards)
    names, calls = library.calls(layer, made)
    words = paired_words(blocks_first(layer, weights))
    assert words is not None, "the same weights in another order"
    numbers = _pair_numbers(layer)
    words = np.concatenate([numbers[:, :2], words.reshape(len(words), -1), numbers[:, 2:]], axis=1)
    return written_out(
        LibraryText("triples", name, ("widening.h", "triples.h"), names, [*lines, *calls]),
        layer,
        {"w": words, **zeros(layer, outside)},
        0 if on_stack else room,
    )


def blocks_first(layer: RoundedConvolution, weights: Any) -> Any:
    """Return ``weights`` with what is left of the rows of a window after their whole blocks.

    Blocks hold their even inputs first: what is left is put so that it stands in its order.
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


def _quads(name: str, layer: RoundedConvolution, words: Array) -> Fast | None:
    """Four outputs of the only window at a time: a dense layer; numbers of 0 fill the last four."""
    spec, dtype = layer.spec, layer.spec.dtype
    inputs = math.prod(spec.weight_shape[:3])
    reads_all = len(spec.pieces) == 1 and math.prod(spec.pieces[0]) == inputs
    if not reads_all or any(spec.padding) or inputs % BLOCK:
        return None
    if len(words) % 2 and len(words) < FEW_PAIRS:
        return None
    filled = [(0, len(words) % 2), (0, 0)]
    blocks = np.pad(words, [*filled, (0, 0)]).reshape(-(-len(words) // 2), 2, -1, 2)
    blocks = blocks.transpose(0, 2, 3, 1)
    twice = "positive" if layer.clamps_at_zero else "twice"
    how = "once" if layer.how.name == "ROUND_ONCE_SMALL" else twice
    wide = 2 * inputs <= short.STACK_BYTES and inputs * spec.channels >= WIDENED_PRODUCTS
    made = f"wide, quads_{how}_wide_{dtype}" if wide else f"NULL, quads_{how}_{dtype}"
    lines = (
        f"static const requantisation to = {library.target(layer)};",
        f"const int32_t outputs = {spec.channels};",
        *[f"int16_t wide[{inputs}] __attribute__((aligned(8)));"] * wide,
        f"dense_quads_{dtype}(x0, w, q, out, {inputs}, outputs, &to, {made});",
    )
    params = [Param("x0", dtype, True), Param("w", "int32", True), Param("q", "int32", True)]
    files = ("dot.h", "requantise.h", "short.h", f"quads.h:{dtype}")
    body = "".join(f"    {line}\n" for line in lines)
    kernel = Kernel(name, (*params, Param("out", dtype, False)), body, files)
    numbers = np.pad(_pair_numbers(layer), filled)
    return Fast("quads", kernel, (np.ascontiguousarray(blocks), numbers), 0)
