"""The kernels of the library (``firmware/kernels``) for an operator, or why there are none.

The spec of a TIR kernel states its convolution or dense layer. The library computes lines of the
result from rows at any address: a kernel for complete tensors passes the rows of its inputs, a row
kernel the rows it is called with. Other operators keep their kernels from TIR: other layouts,
grouped and wide depthwise convolutions, weights that exceed 8 bits without their zero point, and
rounding in float.
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
from tvm_serenity.kernels.records import AveragePool, BatchMatmul, MaxPool, RowSoftmax, Sum
from tvm_serenity.kernels.rows import RowKernel
from tvm_serenity.kernels.spec_read import spec_of
from tvm_serenity.quantize.fixed import Multiplier

Unweighted = Sum | AveragePool | MaxPool | BatchMatmul | RowSoftmax
"""Records of layers without weights; a softmax reads one table."""
FEW_PRODUCTS = 512
"""A network with fewer products is smaller, and not slower, without the library."""


def library_calls(
    name: str,
    function: tirx.PrimFunc,
    arguments: Sequence[Any],
    rows: RowKernel | None = None,
    core: Extensions = PLAIN,
) -> tuple[LibraryCall, ...]:
    """Return the library's calls for a kernel from TIR, the cheapest first.

    ``arguments``: those of the unsplit kernel's call, constants as arrays, others None. ``rows``:
    the row kernel, if the kernel computes one row, or several consecutive rows, at a time. Raises
    :class:`NotCovered` with the condition that is not met.
    """
    spec = spec_of(function, arguments) or max_pool_of(function)
    constants = [a for a in arguments if a is not None]
    if isinstance(spec, Unweighted) and len(constants) == isinstance(spec, RowSoftmax):
        layer = replace(plain_layer(spec, rows, core), constants=tuple(constants))
        return candidates(name, layer, core)
    if isinstance(spec, Dense):
        if rows is not None:
            raise NotCovered("does not support dense layers by rows")
        spec = spec.pointwise
    if not isinstance(spec, Convolution):
        raise NotCovered(NONE)
    _check_layout(spec, rows)
    if rows is not None:
        return of_rows(name, spec, constants, core)
    whole = _layer(_joined_lines(spec), constants[0], constants[1])
    return candidates(name, replace(whole, vectors=core.vectors), core)


def of_rows(
    name: str, spec: Convolution, constants: Sequence[Any], core: Extensions = PLAIN
) -> tuple[LibraryCall, ...]:
    """Return the library's calls for a row of a convolution, as :func:`library_calls` does.

    ``constants`` begin with the weights and the biases.
    """
    layer = _layer(spec, constants[0], constants[1])
    return candidates(name, replace(layer, by_rows=True, vectors=core.vectors), core)


def plain_layer(spec: Unweighted, rows: RowKernel | None, core: Extensions) -> PlainLayer:
    """Return the :class:`PlainLayer` of a layer without weights; its constants are left out."""
    shape = spec.pair.output_shape if isinstance(spec, Sum) else spec.shape
    if rows is not None and len(rows.variants) > 1:
        raise NotCovered("supports only layers with one kernel for all rows")
    slots = () if rows is None else tuple(slot.parameter for slot in rows.slots)
    return PlainLayer(spec, shape, slots, rows is not None, core.vectors)


def _check_layout(spec: Convolution, rows: RowKernel | None) -> None:
    """Raise :class:`NotCovered` unless tensors are 8-bit integers with channels last."""
    if not {spec.dtype, spec.requantise.dtype} <= {"int8", "uint8"}:
        types = f"{spec.dtype} to {spec.requantise.dtype}"
        raise NotCovered(f"supports only 8-bit integers, not {types}")
    slots = len(spec.pieces) * spec.weight_shape[0]
    in_rows = rows is None or (len(rows.variants) == 1 and len(rows.slots) == slots)
    if spec.layout != "NHWC" or spec.pieces[0][0] != 1 or not in_rows:
        raise NotCovered("supports only complete rows with channels last, of one image")


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
    """Return the layer with weights, biases and rounding of the library."""
    small = centred(weights.reshape(spec.weight_shape), spec.weight_zero)
    if small is None:
        raise NotCovered("supports only weights that fit into 8 bits without their zero point")
    if spec.requantise.rounding == "tflite":
        spec, small, bias = _in_small_numbers(spec, small, bias)
    finish = spec.requantise
    largest = largest_sums(small, bias, spec.dtype)
    rounded = rounding(finish.rounding, finish.multiplier.value, finish.multiplier.shift, largest)
    if rounded is None:
        raise NotCovered(f"does not support the rounding {finish.rounding} for these sums")
    return RoundedConvolution(spec, small, bias, rounded, narrow=narrow(small, largest))


def _in_small_numbers(
    spec: Convolution, weights: Array, bias: Array
) -> tuple[Convolution, Any, Array]:
    """Return the layer with small constants for constant channels."""
    m = spec.requantise.multiplier
    small = with_small_constants(Channels(weights, bias, m.value, m.shift), spec.dtype)
    finish = replace(spec.requantise, multiplier=Multiplier(small.values, small.shifts, ()))
    return replace(spec, requantise=finish), small.weights, small.bias
