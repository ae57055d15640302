"""The counts of a kernel's work for a layer; the price table of a core has a price for each.

The counts are the iterations of the kernel's loops over register tiles, windows, rows and inputs.
They are the same on all cores.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from tvm_serenity.firmware.c_names import weighted
from tvm_serenity.firmware.kernels.parts.layer import LANES, RoundedConvolution, in_vectors
from tvm_serenity.firmware.kernels.record import KernelOptions


@dataclass(frozen=True)
class RegisterTile:
    """Windows, lines and outputs that a kernel computes together; ``lines`` of complete tensors."""

    windows: int
    lines: int
    outputs: int


def lines_of(layer: RoundedConvolution) -> tuple[int, int]:
    """Return the lines that a call computes, and the pixels of each; joined lines count as one."""
    _, lines, pixels, _ = layer.spec.output_shape
    if layer.by_rows:
        return 1, pixels * (layer.together if layer.plain else 1)
    return (1, lines * pixels) if layer.plain else (lines, pixels)


def of_windows(by: RegisterTile, layer: RoundedConvolution) -> list[float]:
    """Return the counts of a convolution that is computed in register tiles."""
    lines, pixels = lines_of(layer)
    chunks = [lines // by.lines] + [1] * (lines % by.lines > 0)
    sizes = [by.lines * pixels, lines % by.lines * pixels]
    full = sum(n * (size // by.windows) for n, size in zip(chunks, sizes, strict=False))
    left = [
        sum(n for n, size in zip(chunks, sizes, strict=False) if size % by.windows == rest)
        for rest in (1, 2)
    ]
    outputs, sources = -(-layer.spec.channels // by.outputs), layer.sources
    if layer.grouped:
        blocks = -(-layer.depth // LANES) if layer.gathers else in_vectors(layer.stretches)
    else:
        blocks = layer.depth // 4
    count, over, parts = lines * pixels, leaving(layer), [full, *left]
    rows = layer.stretches
    ragged = sum(n % 4 != 0 for n in rows)
    short = layer.grouped and max(rows) <= LANES and len(layer.spec.pieces) == 1
    scattered = _scattered(layer, by)
    return [
        1,
        sum(chunks),
        lines * sources,
        *parts,
        count * sources,
        0 if short else count * layer.depth,
        0 if short else count * sources,
        scattered,
        scattered * sources,
        scattered * ragged,
        count * ragged,
        over,
        over * sources,
        over * layer.depth,
        over * ragged,
        *(part * outputs for part in parts),
        sum(parts) * outputs * sources,
        *(part * outputs * blocks for part in parts),
        sum(parts) * outputs * (not layer.clamps_at_zero),
        clamped(layer),
    ]


def _scattered(layer: RoundedConvolution, by: RegisterTile) -> int:
    """Return the number of windows in tiles that span two lines or reach beyond a line."""
    lines, pixels = lines_of(layer)
    if layer.plain:
        return 0
    inside = ~_leaves(layer)
    total = 0
    for together in (by.lines, lines % by.lines):
        within = np.tile(inside, together)
        line = np.repeat(np.arange(together), pixels)
        groups = within.size // by.windows
        ends = [
            values[: groups * by.windows].reshape(groups, by.windows) for values in (line, within)
        ]
        good = (ends[0] == ends[0][:, :1]).all(axis=1) & ends[1].all(axis=1)
        times = lines // by.lines if together == by.lines else 1
        total += times * (within.size - by.windows * int(good.sum()))
    return total


def of_pixels(layer: RoundedConvolution, lanes: int, *, twins: bool = False) -> list[float]:
    """Return the counts of a depthwise convolution, ``lanes`` channels of a pixel at a time.

    ``twins``: eight channels of two consecutive pixels share a vector.
    """
    spec = layer.spec
    lines, pixels = lines_of(layer)
    groups, taps = -(-spec.channels // lanes), spec.weight_shape[0] * spec.weight_shape[1]
    count, over = lines * pixels, leaving(layer)
    if twins and spec.channels == LANES // 2 and spec.strides[1] == 1:
        count //= 2
    return [
        1,
        lines,
        lines * groups,
        count,
        count * groups,
        lines * groups * (pixels % 2),
        count * groups * taps,
        count * (spec.channels % lanes),
        over,
        over * groups,
        over * taps,
        over * groups * taps,
        count * groups * (not layer.clamps_at_zero),
        clamped(layer),
    ]


def _leaves(layer: RoundedConvolution) -> npt.NDArray[np.bool_]:
    """Return, for each window of a line, whether it reaches beyond the line."""
    spec = layer.spec
    reach = (spec.weight_shape[1] - 1) * spec.dilation[1] + 1
    at = np.arange(spec.output_shape[2]) * spec.strides[1] - spec.padding[1]
    return (at < 0) | (at + reach > spec.pieces[0][2])


def leaving(layer: RoundedConvolution) -> int:
    """Return the number of windows that reach beyond their line."""
    lines = 1 if layer.by_rows else layer.spec.output_shape[1]
    return lines * int(_leaves(layer).sum())


def clamped(layer: RoundedConvolution) -> int:
    """Return the number of results that are clamped to less than the range of their type."""
    spec, r = layer.spec, layer.spec.requantise
    limits = np.iinfo(r.dtype)
    lines = 1 if layer.by_rows else spec.output_shape[1]
    full = (r.low, r.high) == (limits.min, limits.max)
    return 0 if full else lines * spec.output_shape[2] * spec.channels


TYPES = ("int8", "uint8")
"""The types of inputs, with weights of 8 bits."""
NARROW_TYPES = (*TYPES, *(weighted(dtype, 4) for dtype in TYPES))
"""The types of inputs, with weights of 8 and of 4 bits."""


def cases_of(*parts: Sequence[str]) -> tuple[str, ...]:
    """Return the cases of a price table: each combination of words, one word of each part."""
    return tuple(", ".join(word for word in words if word) for words in product(*parts))


def case_of_windows(layer: RoundedConvolution, options: KernelOptions) -> str:
    """Return the case of the price table that prices a convolution."""
    words = {
        "gathered": options.gathered,
        "plain": layer.plain,
        "joined": len(layer.spec.pieces) > 1,
        layer.name: True,
    }
    return ", ".join(word for word, said in words.items() if said)


def cases_of_windows(
    types: Sequence[str] = TYPES, reads: Sequence[str] = ("", "gathered")
) -> tuple[str, ...]:
    """Return the cases of convolutions; ``reads``: windows in place ("") and copied."""
    return cases_of(reads, ("", "plain"), ("", "joined"), types)


def case_of_stride(layer: RoundedConvolution, _options: KernelOptions) -> str:
    """Return the case of a depthwise convolution, by stride along a line and type."""
    return f"stride {layer.spec.strides[1]}, {layer.name}"


CASES_OF_STRIDE = cases_of(("stride 1", "stride 2"), TYPES)


def case_of_type(layer: RoundedConvolution, _options: KernelOptions) -> str:
    """Return the case of a kernel whose cases are the types of inputs."""
    return layer.name
