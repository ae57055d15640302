"""The kernels that the library has for a layer on a core, the cheapest there (``cost``) first.

A core with the DSP extension, or with neither it nor vectors, has kernels of its own; behind them
stand those for any core. Windows may be gathered, or read where they lie.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tvm_serenity.firmware.isa import Extensions
from tvm_serenity.firmware.pack import nibbles
from tvm_serenity.firmware.program import Array, Kernel
from tvm_serenity.firmware.tir import dense, dsp, strips, thumb
from tvm_serenity.firmware.tir.cost import prices_of
from tvm_serenity.firmware.tir.library import (
    MOST_COLUMN_BYTES,
    RoundedConvolution,
    convolution,
    depthwise,
)
from tvm_serenity.firmware.tir.packed import by_sources, in_nines, numbers, packed, with_room
from tvm_serenity.firmware.tir.short import STACK_BYTES, Fast, refusal

MOST_PIECES = 16
MOST_TAPS = 49
MOST_ROWS = 32
"""Rows under a window: a kernel has pointers at those of two lines on its stack."""


class NotCovered(Exception):
    """The library has no form of a kernel; the message says what it has, or does, instead."""


@dataclass(frozen=True, eq=False)
class Tuned:
    """A call of the library: a kernel, the constants it takes after its tensors, workspace.

    ``form``: how it goes about it, in a word or two; ``products``: how many it sums up,
    ``plane_rows``: of a plane of a channel.
    ``refused``: why none is for the board's core alone. ``cost``: of a call, in the units of the
    core's prices, and ``code``: the functions it calls, with their bytes; None and nothing where
    they have no price.
    """

    form: str
    kernel: Kernel
    constants: tuple[Array, ...]
    workspace_bytes: int
    products: int
    plane_rows: int = 0
    refused: str = ""
    cost: int | None = None
    code: Mapping[str, int] = field(default_factory=dict)


def candidates(name: str, layer: RoundedConvolution, core: Extensions) -> tuple[Tuned, ...]:
    """Return the kernels that make a layer, the cheapest first; last those without a price.

    Those of rows have one without workspace among them. Raises :class:`NotCovered` where the
    library has none.
    """
    found = [_fast(layer, one) for one in _for_core(name, layer, core) if one is not None]
    try:
        plain = list(_for_any(name, layer))
    except NotCovered:
        if not found or (layer.by_rows and all(one.workspace_bytes for one in found)):
            raise
        plain = []
    if (core.dsp or core.thumb) and not found:
        plain = [replace(one, refused=refusal(layer)) for one in plain]
    return _priced([*found, *plain], layer, core)


def _priced(
    found: Sequence[Tuned], layer: RoundedConvolution, core: Extensions
) -> tuple[Tuned, ...]:
    """The kernels with what they cost, in order of that.

    Windows that could be read in place are gathered only where that wins more than prices err.
    """
    prices = prices_of(core.name)
    if prices is None:
        return tuple(found)
    priced = [
        replace(
            one,
            cost=prices.cost(one.form, one.plane_rows, layer),
            code=prices.code_of(one.form, layer),
        )
        for one in found
    ]
    known = [one for one in priced if one.cost is not None]
    doubt = 0.0 if layer.apart or layer.must_gather else prices.error_percent[1] / 100
    gathered = {id(one): 1 + doubt * ("gathered" in one.form) for one in known}
    known.sort(key=lambda one: ((one.cost or 0) * gathered[id(one)], one.workspace_bytes))
    return (*known, *(one for one in priced if one.cost is None))


def least(found: Sequence[Tuned], spread: Callable[[Tuned], int] = lambda _made: 0) -> Tuned:
    """Return the cheapest of the kernels with the least workspace.

    ``spread``: bytes that one needs beside it, which count where workspace is the same.
    """
    return min(found, key=lambda one: (one.workspace_bytes, spread(one)))


def _for_core(name: str, layer: RoundedConvolution, core: Extensions) -> list[Fast | None]:
    """The kernels for the DSP extension, or for cores without it and without vectors."""
    spec, which = layer.spec, core.thumb
    if not core.dsp and not which:
        return []
    if layer.apart:
        return [*(thumb.apart(name, layer, which) if which else dsp.apart(name, layer))]
    covered = (spec.groups == 1 or spec.depthwise) and len(spec.pieces) <= MOST_PIECES
    if not covered or layer.sources > MOST_ROWS:
        return []
    weights, read = by_sources(layer), _read_as(layer, STACK_BYTES)
    if which:
        return [thumb.convolved(name, one, weights, which) for one in read]
    wide = dsp.widened(name, layer, weights)
    return [wide, *(dsp.convolved(name, one, weights) for one in read)]


def _for_any(name: str, layer: RoundedConvolution) -> Iterator[Tuned]:
    """The kernels for cores of every kind, or for those with vectors."""
    spec = layer.spec
    if len(spec.pieces) * spec.weight_shape[0] > MOST_ROWS:
        raise NotCovered(f"has windows of at most {MOST_ROWS} rows")
    if layer.apart:
        yield _apart(name, layer)
        return
    if spec.groups != 1 and not spec.depthwise:
        raise NotCovered("has no grouped convolutions")
    if len(spec.pieces) > MOST_PIECES:
        raise NotCovered(f"reads at most {MOST_PIECES} pieces")
    if strips.covered(layer):
        constants = tuple(strips.constants(layer, by_sources(layer)))
        kernel, size = strips.convolution(name, layer), strips.workspace_bytes(layer)
        yield Tuned("strips", kernel, constants, size, _products(layer))
    if dense.covered(layer):
        constants = tuple(dense.constants(layer, by_sources(layer)))
        yield Tuned("one window", dense.dense(name, layer), constants, 0, _products(layer))
    read = _read_as(layer, MOST_COLUMN_BYTES)
    if not read:
        raise NotCovered(f"gathers at most {MOST_COLUMN_BYTES} bytes of windows by rows")
    for one in read:
        form = ("groups" if one.grouped else "pairs") + ", gathered" * one.gathers
        size = 2 * one.depth if one.gathers and not one.by_rows else 0
        yield _tuned(form, one, convolution(name, one), packed(one), size)


def _read_as(layer: RoundedConvolution, stack_bytes: int) -> list[RoundedConvolution]:
    """The layer with its windows gathered and read where they lie, as far as it can be.

    Columns of row kernels lie on the stack.
    """
    held = not layer.by_rows or 2 * layer.depth <= stack_bytes
    if layer.must_gather:
        return [layer] * held
    if layer.sources == 1 or not held:
        return [layer]
    gathered = replace(layer, gathered=True)
    return [layer, gathered]


def _apart(name: str, layer: RoundedConvolution) -> Tuned:
    spec = layer.spec
    kh, kw, channels = spec.weight_shape
    if len(spec.pieces) > 1 or spec.pieces[0][3] != channels or kh * kw > MOST_TAPS:
        most = f"at most {MOST_TAPS} taps"
        raise NotCovered(f"has depthwise ones of {most}, one output an input")
    if layer.narrow and spec.channels % 2 == 0:
        return _tuned("eights", layer, depthwise(name, layer), nibbles(layer.weights), 0)
    layer = replace(layer, narrow=False)
    form = "nines" if layer.nines else "eights"
    return _tuned(form, layer, depthwise(name, layer), layer.weights, 0)


def _tuned(
    form: str, layer: RoundedConvolution, kernel: Kernel, weights: Array, workspace_bytes: int
) -> Tuned:
    if layer.apart and layer.nines:
        constants = in_nines(layer)
    else:
        constants = [with_room(layer, weights), *numbers(layer)]
    if layer.outside:
        constants.append(np.full(layer.outside, layer.spec.input_zero, layer.spec.dtype))
    return Tuned(form, kernel, tuple(constants), workspace_bytes, _products(layer))


def _fast(layer: RoundedConvolution, made: Fast) -> Tuned:
    return Tuned(
        made.form,
        made.kernel,
        made.constants,
        made.workspace_bytes,
        _products(layer),
        made.plane_rows,
    )


def _products(layer: RoundedConvolution) -> int:
    return math.prod(layer.spec.output_shape[:3]) * layer.weights.size
