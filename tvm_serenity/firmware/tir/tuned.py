"""Which kernel of the library (``firmware/library``) serves an operator, or why none does.

The spec that a kernel carries says which convolution or dense layer it is. The library makes lines
of the result from rows that may lie anywhere: a kernel of a whole tensor passes it the rows of its
inputs, a row kernel those it is called with. What the library does not cover stays as TIR says it:
other layouts, grouped and wide depthwise convolutions, weights that do not fit into 8 bits once
their zero point is subtracted, rounding in float.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from tvm import tirx

from tvm_serenity.firmware.pack import (
    BLOCK,
    Channels,
    centred,
    in_groups,
    largest_sums,
    narrow,
    nibbles,
    paired,
    paired_nibbles,
    rounding,
    settled,
)
from tvm_serenity.firmware.program import Array, Kernel
from tvm_serenity.firmware.tir import dense as one_window
from tvm_serenity.firmware.tir import dsp as fast_dsp
from tvm_serenity.firmware.tir import strips
from tvm_serenity.firmware.tir import thumb as fast_thumb
from tvm_serenity.firmware.tir.library import (
    MOST_COLUMN_BYTES,
    RoundedConvolution,
    convolution,
    depthwise,
)
from tvm_serenity.firmware.tir.short import Fast, refusal
from tvm_serenity.firmware.tir.sums import sum_with_vectors
from tvm_serenity.kernels.convolution import Convolution, Dense
from tvm_serenity.kernels.records import Sum
from tvm_serenity.kernels.rows import RowKernel
from tvm_serenity.kernels.spec_read import spec_of
from tvm_serenity.quantize.fixed import Multiplier

FEW_PRODUCTS = 512
"""A network of fewer takes less code, and no more instructions, without the library."""
MOST_PIECES = 16
MOST_TAPS = 32
TWINS = 8
"""So many channels of two pixels fill a vector of inputs."""
LANES = 4
"""Outputs that are requantised as one vector."""
MOST_ROWS = 32
"""Rows under a window: a kernel has pointers at those of two lines on its stack."""


@dataclass(frozen=True)
class Tuned:
    """A call of the library: a kernel, the constants it takes after its tensors, workspace.

    ``products``: how many it sums up. ``roomy``: a faster one with more workspace, if there is one.
    ``refused``: why it is not one for the board's core alone.
    """

    kernel: Kernel
    constants: tuple[Array, ...]
    workspace_bytes: int
    products: int
    roomy: "Tuned | None" = None
    refused: str = ""


class NotCovered(Exception):
    """The library has no form of a kernel; the message says what it has, or does, instead."""


def tuned(
    name: str,
    function: tirx.PrimFunc,
    arguments: Sequence[Any],
    rows: RowKernel | None = None,
    *,
    vectors: bool = False,
    dsp: bool = False,
    thumb: int = 0,
) -> Tuned:
    """Return the library's form of a kernel and its call.

    ``arguments`` are those of the whole kernel's call, as arrays where they are constants, else
    None. ``rows``: the kernel makes one row at a time, or several that follow each other.
    ``vectors``: the core has vector instructions; ``dsp``: it has those of the DSP extension alone;
    ``thumb``: it has neither, but this instruction set.
    Raises :class:`NotCovered` with the condition that is not met.
    """
    spec = spec_of(function, arguments)
    constants = [a for a in arguments if a is not None]
    if isinstance(spec, Sum) and vectors and not constants:
        return _sum(name, spec, rows)
    if isinstance(spec, Dense):
        if rows is not None:
            raise NotCovered("a dense layer has no rows")
        spec = _as_convolution(spec)
    if not isinstance(spec, Convolution):
        raise NotCovered("has convolutions and dense layers, with vectors sums of two tensors")
    _check_layout(spec, rows)
    layer = _layer(spec if rows is not None else _lying(spec), constants[0], constants[1])
    layer = replace(layer, by_rows=rows is not None, vectors=vectors)
    fast = _for_core(name, layer, thumb) if dsp or thumb else None
    if fast is not None and layer.by_rows and fast.workspace_bytes:
        return replace(_called(name, layer), roomy=fast)
    if fast is not None:
        return fast
    made = _called(name, layer)
    return replace(made, refused=refusal(layer)) if dsp or thumb else made


def _sum(name: str, spec: Sum, rows: RowKernel | None) -> Tuned:
    kernel = sum_with_vectors(name, spec, rows)
    if kernel is None:
        raise NotCovered("adds tensors of one shape and 8-bit type")
    return Tuned(kernel, (), 0, math.prod(spec.pair.output_shape))


def _as_convolution(spec: Dense) -> Convolution:
    """A dense layer as a convolution of 1x1 over one row."""
    return Convolution(
        "NHWC",
        ((1, 1, spec.rows, spec.inputs),),
        spec.dtype,
        (1, 1, spec.inputs, spec.units),
        spec.weight_dtype,
        (1, 1),
        (0, 0, 0, 0),
        (1, 1),
        1,
        0,
        spec.weight_zero,
        spec.requantise,
    )


def _check_layout(spec: Convolution, rows: RowKernel | None) -> None:
    """Raise :class:`NotCovered` unless these are 8-bit integers, stored by rows."""
    if not {spec.dtype, spec.requantise.dtype} <= {"int8", "uint8"}:
        types = f"{spec.dtype} to {spec.requantise.dtype}"
        raise NotCovered(f"has 8-bit integers only, not {types}")
    slots = len(spec.pieces) * spec.weight_shape[0]
    in_rows = rows is None or (len(rows.variants) == 1 and len(rows.slots) == slots)
    if spec.layout != "NHWC" or spec.pieces[0][0] != 1 or not in_rows:
        raise NotCovered("reads whole rows with channels last, of one image")


def _lying(spec: Convolution) -> Convolution:
    """Return the same layer with one row under its windows, where they are as wide as the image.

    Then its rows may be joined to one: the windows move along it.
    """
    (_, _, width, _), (kh, kw) = spec.pieces[0], spec.weight_shape[:2]
    top, left, bottom, right = spec.padding
    joined = width == 1 or (len(spec.pieces) == 1 and spec.dilation == (1, 1))
    if kw != width or left or right or not joined:
        return spec
    pieces = tuple((1, 1, shape[1] * width, shape[3]) for shape in spec.pieces)
    return replace(
        spec,
        pieces=pieces,
        weight_shape=(1, kh * kw, *spec.weight_shape[2:]),
        strides=(1, spec.strides[0] * width),
        padding=(0, top * width, 0, bottom * width),
        dilation=(1, spec.dilation[0]),
    )


def _layer(spec: Convolution, weights: Array, bias: Array) -> RoundedConvolution:
    """The layer with its numbers as the library wants them."""
    small = centred(weights.reshape(spec.weight_shape), spec.weight_zero)
    if small is None:
        raise NotCovered("weights less their zero point do not fit into 8 bits")
    if spec.requantise.rounding == "tflite":
        spec, small, bias = _in_small_numbers(spec, small, bias)
    finish = spec.requantise
    largest = largest_sums(small, bias, spec.dtype)
    how = rounding(finish.rounding, finish.multiplier.value, finish.multiplier.shift, largest)
    if how is None:
        raise NotCovered(f"does not round as {finish.rounding} with such sums")
    return RoundedConvolution(spec, small, bias, how, narrow=narrow(small, largest))


def _in_small_numbers(
    spec: Convolution, weights: Array, bias: Array
) -> tuple[Convolution, Any, Array]:
    """The same layer with its constant channels in small numbers (``pack.settled``)."""
    m = spec.requantise.multiplier
    made = settled(Channels(weights, bias, m.value, m.shift), spec.dtype)
    finish = replace(spec.requantise, multiplier=Multiplier(made.values, made.shifts, ()))
    return replace(spec, requantise=finish), made.weights, made.bias


def _for_core(name: str, layer: RoundedConvolution, thumb: int) -> Tuned | None:
    """The form of a layer for the DSP extension, or without, None where there is none."""
    spec = layer.spec
    little: Fast | None
    fast: Fast | None
    if layer.apart and thumb:
        little, fast = (fast_thumb.apart(name, layer, thumb, little=few) for few in (True, False))
    elif layer.apart:
        little, fast = (fast_dsp.apart(name, layer, little=few) for few in (True, False))
    else:
        covered = (spec.groups == 1 or spec.depthwise) and len(spec.pieces) <= MOST_PIECES
        if not covered or layer.sources > MOST_ROWS:
            return None
        weights = _by_sources(layer)
        if thumb:
            little = fast = fast_thumb.convolved(name, layer, weights, thumb)
        else:
            little, fast = (
                fast_dsp.convolved(name, layer, weights, little=few) for few in (True, False)
            )
    if fast is None:
        return None
    roomy = Tuned(fast.kernel, fast.constants, fast.workspace_bytes, _products(layer))
    if little is None or fast.workspace_bytes <= little.workspace_bytes:
        return roomy
    return replace(
        roomy,
        kernel=little.kernel,
        constants=little.constants,
        workspace_bytes=little.workspace_bytes,
        roomy=roomy,
    )


def _products(layer: RoundedConvolution) -> int:
    return math.prod(layer.spec.output_shape[:3]) * layer.weights.size


def _called(name: str, layer: RoundedConvolution) -> Tuned:
    spec = layer.spec
    if len(spec.pieces) * spec.weight_shape[0] > MOST_ROWS:
        raise NotCovered(f"has windows of at most {MOST_ROWS} rows")
    if layer.apart:
        if not _has_few_taps(spec):
            most = f"at most {MOST_TAPS} taps"
            raise NotCovered(f"has depthwise ones of {most}, one output an input")
        if layer.narrow and spec.channels % 2 == 0:
            return _tuned(layer, depthwise(name, layer), nibbles(layer.weights), 0)
        layer = replace(layer, narrow=False)
        return _tuned(layer, depthwise(name, layer), layer.weights, 0)
    if spec.groups != 1 and not spec.depthwise:
        raise NotCovered("has no grouped convolutions")
    if len(spec.pieces) > MOST_PIECES:
        raise NotCovered(f"reads at most {MOST_PIECES} pieces")
    if strips.covered(layer) and (layer.by_rows or strips.direct(layer)):
        return _in_strips(name, layer)
    if one_window.covered(layer):
        constants = tuple(one_window.constants(layer, _by_sources(layer)))
        return Tuned(one_window.dense(name, layer), constants, 0, _products(layer))
    column_bytes = 2 * layer.depth if layer.gathers else 0
    if layer.by_rows and column_bytes > MOST_COLUMN_BYTES:
        raise NotCovered(f"gathers at most {MOST_COLUMN_BYTES} bytes of windows by rows")
    weights = _packed(layer)
    made = _tuned(layer, convolution(name, layer), weights, 0 if layer.by_rows else column_bytes)
    return replace(made, roomy=_in_strips(name, layer)) if strips.covered(layer) else made


def _in_strips(name: str, layer: RoundedConvolution) -> Tuned:
    constants = tuple(strips.constants(layer, _by_sources(layer)))
    kernel, size = strips.convolution(name, layer), strips.workspace_bytes(layer)
    return Tuned(kernel, constants, size, _products(layer))


def _tuned(
    layer: RoundedConvolution, kernel: Kernel, weights: Array, workspace_bytes: int
) -> Tuned:
    if layer.apart and layer.nines:
        constants = in_nines(layer)
    else:
        constants = [_with_room(layer, weights), *_numbers(layer)]
    if layer.outside:
        constants.append(np.full(layer.outside, layer.spec.input_zero, layer.spec.dtype))
    return Tuned(kernel, tuple(constants), workspace_bytes, _products(layer))


def _packed(layer: RoundedConvolution) -> Array:
    """The weights in the order the library reads them."""
    weights = _by_sources(layer)
    if layer.grouped:
        runs = [weights.shape[0]] if layer.gathers else layer.stretches
        return in_groups(weights, runs, 128 if layer.spec.dtype == "uint8" else 0)
    return (paired_nibbles if layer.narrow else paired)(weights)


def in_nines(layer: RoundedConvolution) -> list[Array]:
    """Weights ``[sixteens, 9, 16]``; ``[sixteens, 36]`` words: biases, multipliers, shifts."""
    channels = layer.spec.channels
    weights = layer.weights.reshape(9, channels)
    bias = layer.bias.astype(np.int64)
    if layer.spec.dtype == "uint8":
        bias = bias + 128 * weights.sum(axis=0, dtype=np.int64)
    given: tuple[Array, ...] = (bias, layer.how.multipliers, layer.how.shifts)
    numbers: list[Array] = [np.broadcast_to(a, (channels,)) for a in given]
    if channels == TWINS and layer.spec.strides[1] == 1:
        weights, numbers = np.tile(weights, 2), [np.tile(a, 2) for a in numbers]
    more = -weights.shape[1] % 16
    laid = np.pad(weights, ((0, 0), (0, more))).reshape(9, -1, 16).transpose(1, 0, 2)
    quads = [np.pad(a, (0, more)).reshape(-1, 4, 4)[..., (0, 2, 1, 3)] for a in numbers]
    turned = [a.transpose(0, 2, 1).reshape(-1, 16) for a in quads]
    shifts = np.ascontiguousarray(turned[2].astype(np.int8)).view(np.int32)
    words = [turned[0].astype(np.int32), turned[1].astype(np.int32), shifts]
    return [np.ascontiguousarray(laid), np.concatenate(words, axis=1)]


def _with_room(layer: RoundedConvolution, weights: Array) -> Array:
    """The weights; behind them what vectors may read past the last ones of part of a vector."""
    if not layer.vectors or layer.apart or not layer.narrow:
        return weights
    block = weights.nbytes // (-(-layer.spec.channels // 2) * layer.depth // BLOCK)
    return np.pad(weights.ravel(), (0, 3 * block))


def _numbers(layer: RoundedConvolution) -> list[Array]:
    """Bias, multipliers and shifts of the outputs; vectors read four outputs at a time."""
    numbers = [layer.bias, layer.how.multipliers, layer.how.shifts]
    more = -layer.spec.channels % LANES if layer.vectors and not layer.apart else 0
    return [np.pad(a, (0, more)) if a.size > 1 else a for a in numbers]


def _has_few_taps(spec: Convolution) -> bool:
    """Whether the library has a depthwise convolution like this: no channel multiplier."""
    kh, kw, channels = spec.weight_shape
    return len(spec.pieces) == 1 and spec.pieces[0][3] == channels and kh * kw <= MOST_TAPS


def _by_sources(layer: RoundedConvolution) -> Any:
    """The weights ``[inputs, outputs]`` in the order windows are read: by piece, row, column."""
    spec = layer.spec
    weights = layer.weights.reshape(*spec.weight_shape[:2], -1, spec.channels)
    ends = np.cumsum([shape[3] for shape in spec.pieces])[:-1]
    parts = np.split(weights, ends, axis=2)
    return np.concatenate([part.reshape(-1, spec.channels) for part in parts])
