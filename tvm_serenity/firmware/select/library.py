"""Which kernel of the library (``firmware/kernels``) serves an operator, or why none does.

The spec that a kernel carries says which convolution or dense layer it is. The library makes lines
of the result from rows that may lie anywhere: a kernel of a whole tensor passes it the rows of its
inputs, a row kernel those it is called with. What the library does not cover stays as TIR says it:
other layouts, grouped and wide depthwise convolutions, weights that do not fit into 8 bits once
their zero point is subtracted, rounding in float.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tvm import tirx

from tvm_serenity.firmware.isa import PLAIN, Extensions
from tvm_serenity.firmware.kernels.candidates import NONE, candidates
from tvm_serenity.firmware.kernels.pack import (
    Channels,
    centred,
    largest_sums,
    narrow,
    rounding,
    with_small_constants,
)
from tvm_serenity.firmware.kernels.parts.layer import PlainLayer, RoundedConvolution
from tvm_serenity.firmware.kernels.record import LibraryCall, NotCovered
from tvm_serenity.firmware.program import Array
from tvm_serenity.kernels.convolution import Convolution, Dense
from tvm_serenity.kernels.pool_read import max_pool_of
from tvm_serenity.kernels.records import AveragePool, MaxPool, Sum
from tvm_serenity.kernels.rows import RowKernel
from tvm_serenity.kernels.spec_read import spec_of
from tvm_serenity.quantize.fixed import Multiplier

FEW_PRODUCTS = 512
"""A network of fewer takes less code, and no more instructions, without the library."""


def library_calls(
    name: str,
    function: tirx.PrimFunc,
    arguments: Sequence[Any],
    rows: RowKernel | None = None,
    core: Extensions = PLAIN,
) -> tuple[LibraryCall, ...]:
    """Return the library's forms of a kernel and their calls, the fastest first.

    ``arguments`` are those of the whole kernel's call, as arrays where they are constants, else
    None. ``rows``: the kernel makes one row at a time, or several that follow each other.
    Raises :class:`NotCovered` with the condition that is not met.
    """
    spec = spec_of(function, arguments) or max_pool_of(function)
    constants = [a for a in arguments if a is not None]
    if isinstance(spec, Sum | AveragePool | MaxPool) and not constants:
        return candidates(name, plain_layer(spec, rows, core), core)
    if isinstance(spec, Dense):
        if rows is not None:
            raise NotCovered("a dense layer has no rows")
        spec = _as_convolution(spec)
    if not isinstance(spec, Convolution):
        raise NotCovered(NONE)
    _check_layout(spec, rows)
    if rows is not None:
        return of_rows(name, spec, constants, core)
    layer = replace(_layer(_joined_lines(spec), constants[0], constants[1]), vectors=core.vectors)
    return candidates(name, layer, core)


def of_rows(
    name: str, spec: Convolution, constants: Sequence[Any], core: Extensions = PLAIN
) -> tuple[LibraryCall, ...]:
    """Return the library's kernels of a row of a convolution, as :func:`library_calls` does.

    ``constants`` begin with the weights and the biases.
    """
    layer = _layer(spec, constants[0], constants[1])
    return candidates(name, replace(layer, by_rows=True, vectors=core.vectors), core)


def plain_layer(
    spec: Sum | AveragePool | MaxPool, rows: RowKernel | None, core: Extensions
) -> PlainLayer:
    """Return a layer without weights as kernels of the library see it."""
    shape = spec.pair.output_shape if isinstance(spec, Sum) else spec.shape
    if rows is not None and len(rows.variants) > 1:
        raise NotCovered("has one kernel for all rows")
    slots = () if rows is None else tuple(slot.parameter for slot in rows.slots)
    return PlainLayer(spec, shape, slots, rows is not None, core.vectors)


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


def _joined_lines(spec: Convolution) -> Convolution:
    """Return the same layer with one row under its windows, if they are as wide as the image.

    Then all rows are one row, and the windows move along it.
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
    """Return the layer with small constants for constant channels."""
    m = spec.requantise.multiplier
    small = with_small_constants(Channels(weights, bias, m.value, m.shift), spec.dtype)
    finish = replace(spec.requantise, multiplier=Multiplier(small.values, small.shifts, ()))
    return replace(spec, requantise=finish), small.weights, small.bias
