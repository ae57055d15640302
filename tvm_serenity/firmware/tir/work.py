"""What a kernel of the library has to do for a layer: counts, which a core's table prices.

A form makes so many windows and outputs together, from so many lines; the counts are how often its
loops run. They are the same on all cores (``cost``).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tvm_serenity.firmware.tir import strips
from tvm_serenity.firmware.tir.library import LANES, RoundedConvolution, in_vectors


@dataclass(frozen=True)
class MadeTogether:
    """Windows, lines of whole tensors and outputs that a form makes together."""

    windows: int
    lines: int
    outputs: int


BLOCKINGS = {
    "triples": MadeTogether(3, 3, 2),
    "twos": MadeTogether(2, 2, 2),
    "quads": MadeTogether(1, 1, 4),
    "bytes": MadeTogether(2, 2, 4),
    "lifted": MadeTogether(2, 2, 4),
    "pairs": MadeTogether(2, 2, 2),
    "groups": MadeTogether(3, 3, 4),
    "groups, gathered": MadeTogether(2, 3, 4),
    "one window": MadeTogether(1, 1, 4),
}


def kind(form: str, layer: RoundedConvolution) -> str:
    """Return which row of a table prices a form of a layer."""
    form = form.replace("_once", "")  # rounded once takes a little less
    if form == "planes in a ring":
        form = "planes"
    if form == "planes":
        form = f"planes, stride {layer.spec.strides[1]}"
    elif form == "direct":
        form = f"direct, stride {layer.spec.strides[1]}"
    elif form == "strips":
        form = f"strips of {'16' if _inputs(layer) <= LANES else '32'}"
    if not layer.apart:
        form += ", plain" * layer.plain + ", joined" * (len(layer.spec.pieces) > 1)
    return f"{form}, {layer.name}"


def work(form: str, layer: RoundedConvolution, plane_rows: int = 0) -> list[float]:
    """Return the counts of a form of a layer; ``plane_rows``: how many its plane holds."""
    form = form.replace("_once", "")
    if form.startswith("planes"):
        return _planes(layer, plane_rows)
    if layer.apart:
        return _pixels(form, layer)
    if form == "strips":
        return _strips(layer)
    return _windows(BLOCKINGS[form] if form in BLOCKINGS else BLOCKINGS[form.split(",")[0]], layer)


def lines_of(layer: RoundedConvolution) -> tuple[int, int]:
    """Return the lines a call makes, and their pixels; lines that may be joined are one."""
    _, lines, pixels, _ = layer.spec.output_shape
    if layer.by_rows:
        return 1, pixels
    return (1, lines * pixels) if layer.plain else (lines, pixels)


def _windows(by: MadeTogether, layer: RoundedConvolution) -> list[float]:
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
    count, over, parts = lines * pixels, _leaving(layer), [full, *left]
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
        _clamped(layer),
    ]


def _scattered(layer: RoundedConvolution, by: MadeTogether) -> int:
    """The windows that are made together with others of another line, or that leave theirs."""
    lines, pixels = lines_of(layer)
    if layer.plain:
        return 0
    inside = ~_leaves(layer)
    found = 0
    for together in (by.lines, lines % by.lines):
        within = np.tile(inside, together)
        line = np.repeat(np.arange(together), pixels)
        groups = within.size // by.windows
        ends = [
            values[: groups * by.windows].reshape(groups, by.windows) for values in (line, within)
        ]
        good = (ends[0] == ends[0][:, :1]).all(axis=1) & ends[1].all(axis=1)
        times = lines // by.lines if together == by.lines else 1
        found += times * (within.size - by.windows * int(good.sum()))
    return found


def _strips(layer: RoundedConvolution) -> list[float]:
    lines, pixels = lines_of(layer)
    few = _inputs(layer) <= LANES
    outputs = layer.spec.channels // (4 if few else 2)
    count = lines * pixels
    most = strips.windows(layer)
    times = -(-pixels // most) if most else 1
    copied = count if most else 0
    odd = lines * (times * (most % 2) if most and most % 2 else pixels % 2)
    top, bottom = layer.spec.padding[::2]
    above = 0 if layer.by_rows else min(lines, top + bottom) * pixels
    over = max(_leaving(layer), above if most else 0)
    sources = layer.sources
    return [
        1,
        lines,
        lines * times,
        lines * times * outputs,
        outputs * odd,
        count,
        count * outputs,
        count * outputs * (not layer.clamps_at_zero),
        copied * sources,
        copied * layer.depth,
        lines * sources * times if most else 0,
        over,
        over * sources,
        over * layer.depth,
    ]


def _planes(layer: RoundedConvolution, held: int) -> list[float]:
    spec = layer.spec
    channels, width = spec.channels, spec.output_shape[2]
    lines = 1 if layer.by_rows else spec.output_shape[1]
    stride, height = spec.strides[0], 3 if layer.by_rows else spec.pieces[0][1]
    rows = min((lines - 1) * stride + 3, height)
    most = (held - 3) // stride + 1
    chunks = -(-lines // most)
    moved = (chunks - 1) * max(3 - stride, 0) * (width * spec.strides[1] + 3)
    rest = width % 4
    return [
        channels,
        channels * chunks,
        channels * lines,
        channels * lines * (width // 4),
        *(channels * lines * (rest == n) for n in (1, 2, 3)),
        channels * rows,
        channels * rows * spec.pieces[0][2],
        channels * moved,
        held * width,
        channels * lines * width * (not layer.clamps_at_zero),
        _clamped(layer),
    ]


def _pixels(form: str, layer: RoundedConvolution) -> list[float]:
    spec = layer.spec
    lines, pixels = lines_of(layer)
    lanes = {"direct": 4, "nines": 16}.get(form, 4)
    groups, taps = -(-spec.channels // lanes), spec.weight_shape[0] * spec.weight_shape[1]
    count, over = lines * pixels, _leaving(layer)
    if form == "nines" and spec.channels == LANES // 2 and spec.strides[1] == 1:
        count //= 2  # two pixels fill a vector
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
        _clamped(layer),
    ]


def _inputs(layer: RoundedConvolution) -> int:
    return int(np.prod(layer.weights.shape[:-1]))


def _leaves(layer: RoundedConvolution) -> npt.NDArray[np.bool_]:
    """Which windows of a line leave it."""
    spec = layer.spec
    reach = (spec.weight_shape[1] - 1) * spec.dilation[1] + 1
    at = np.arange(spec.output_shape[2]) * spec.strides[1] - spec.padding[1]
    return (at < 0) | (at + reach > spec.pieces[0][2])


def _leaving(layer: RoundedConvolution) -> int:
    """The windows that leave their line."""
    lines = 1 if layer.by_rows else layer.spec.output_shape[1]
    return lines * int(_leaves(layer).sum())


def _clamped(layer: RoundedConvolution) -> int:
    """The results that are clamped to less than their type."""
    spec, r = layer.spec, layer.spec.requantise
    limits = np.iinfo(r.dtype)
    lines = 1 if layer.by_rows else spec.output_shape[1]
    full = (r.low, r.high) == (limits.min, limits.max)
    return 0 if full else lines * spec.output_shape[2] * spec.channels
