"""Match an operator with kernels of the library (``firmware/kernels``), or say why none covers it.

The spec attached to a TIR kernel states which convolution or dense layer it computes. Library
kernels compute rows of the result from input rows at any address: a kernel of an unsplit tensor
passes all rows of its inputs, a row kernel passes the rows that it is called with. Not covered, and
left to TIR: other layouts, grouped and wide depthwise convolutions, weights that do not fit in 8
bits after their zero point is subtracted, and rounding in float.
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
    settled,
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
"""Networks with fewer multiply-accumulates are smaller, and no slower, without the library."""


def library_calls(
    name: str,
    function: tirx.PrimFunc,
    arguments: Sequence[Any],
    rows: RowKernel | None = None,
    core: Extensions = PLAIN,
) -> tuple[LibraryCall, ...]:
    """Return the library's kernels for ``function`` with their constants, the fastest first.

    ``arguments`` are those of the call of the unsplit kernel: arrays for constants, else None.
    ``rows``: the kernel computes one row at a time, or several consecutive rows. Raises
    :class:`NotCovered` with the condition that does not hold.
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
    layer = replace(_layer(_lying(spec), constants[0], constants[1]), vectors=core.vectors)
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
    """Return the library's description of a layer without weights."""
    shape = spec.pair.output_shape if isinstance(spec, Sum) else spec.shape
    if rows is not None and len(rows.variants) > 1:
        raise NotCovered("has only kernels with one variant for all rows")
    slots = () if rows is None else tuple(slot.parameter for slot in rows.slots)
    return PlainLayer(spec, shape, slots, rows is not None, core.vectors)


def _as_convolution(spec: Dense) -> Convolution:
    """Return a dense layer as a 1x1 convolution over one row."""
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
    """Raise :class:`NotCovered` unless the data are 8-bit integers in NHWC layout."""
    if not {spec.dtype, spec.requantise.dtype} <= {"int8", "uint8"}:
        types = f"{spec.dtype} to {spec.requantise.dtype}"
        raise NotCovered(f"has kernels for 8-bit integers only, not for {types}")
    slots = len(spec.pieces) * spec.weight_shape[0]
    in_rows = rows is None or (len(rows.variants) == 1 and len(rows.slots) == slots)
    if spec.layout != "NHWC" or spec.pieces[0][0] != 1 or not in_rows:
        raise NotCovered("covers NHWC layout and batch size 1 only")


def _lying(spec: Convolution) -> Convolution:
    """Return the layer reshaped to one row if its windows are as wide as the image.

    The rows of the image become consecutive pixels of one row, and the windows move along it.
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
    """Return the layer with centred weights and the library's rounding."""
    small = centred(weights.reshape(spec.weight_shape), spec.weight_zero)
    if small is None:
        raise NotCovered("weights do not fit in 8 bits after their zero point is subtracted")
    if spec.requantise.rounding == "tflite":
        spec, small, bias = _in_small_numbers(spec, small, bias)
    finish = spec.requantise
    largest = largest_sums(small, bias, spec.dtype)
    how = rounding(finish.rounding, finish.multiplier.value, finish.multiplier.shift, largest)
    if how is None:
        raise NotCovered(f"cannot round as {finish.rounding} with sums of this size")
    return RoundedConvolution(spec, small, bias, how, narrow=narrow(small, largest))


def _in_small_numbers(
    spec: Convolution, weights: Array, bias: Array
) -> tuple[Convolution, Any, Array]:
    """Return the layer with its constant channels in small numbers (``pack.settled``)."""
    m = spec.requantise.multiplier
    made = settled(Channels(weights, bias, m.value, m.shift), spec.dtype)
    finish = replace(spec.requantise, multiplier=Multiplier(made.values, made.shifts, ()))
    return replace(spec, requantise=finish), made.weights, made.bias
