"""Kernels of the library (``firmware/library``) in place of kernels written from TIR.

The spec that a kernel carries says which convolution or dense layer it is. What the library does
not cover stays as it is: other layouts, grouped and wide depthwise convolutions, weights that do
not fit into 8 bits once their zero point is subtracted, rounding in float.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tvm_serenity.firmware.pack import (
    Channels,
    Rounding,
    centred,
    largest_sums,
    paired,
    rounding,
    settled,
)
from tvm_serenity.firmware.program import Array, Kernel, Param
from tvm_serenity.kernels.convolution import Convolution, Dense
from tvm_serenity.kernels.spec_read import spec_of
from tvm_serenity.quantize.fixed import Multiplier

MOST_PIECES = 16
MOST_TAPS = 32


@dataclass(frozen=True)
class Tuned:
    """A call of the library: a kernel, the constants it takes after its tensors, workspace."""

    kernel: Kernel
    constants: tuple[Array, ...]
    workspace_bytes: int


def tuned(name: str, function: Any, arguments: Sequence[Any]) -> Tuned | None:
    """Return the library's form of a kernel and its call, None where it has none.

    ``arguments`` are those of the call, as arrays where they are constants, else None.
    """
    spec = spec_of(function, arguments)
    constants = [a for a in arguments if a is not None]
    if isinstance(spec, Dense):
        return _convolution(name, as_convolution(spec), constants)
    if not isinstance(spec, Convolution) or spec.layout != "NHWC" or spec.pieces[0][0] != 1:
        return None
    if spec.depthwise and spec.pieces[0][3] > 1:
        return _depthwise(name, spec, constants)
    return _convolution(name, spec, constants) if spec.groups == 1 or spec.depthwise else None


def as_convolution(spec: Dense) -> Convolution:
    """Return a dense layer as a convolution of one pixel."""
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


def is_eight_bits(spec: Convolution) -> bool:
    """Whether what is read and what is made are 8-bit integers."""
    return {spec.dtype, spec.requantise.dtype} <= {"int8", "uint8"}


def in_small_numbers(
    spec: Convolution, weights: Any, bias: Array
) -> tuple[Convolution, Any, Array]:
    """Return the same layer with its constant channels in small numbers (``pack.settled``)."""
    finish = spec.requantise
    if finish.rounding != "tflite":
        return spec, weights, bias
    m = finish.multiplier
    made = settled(Channels(weights, bias, m.value, m.shift), spec.dtype)
    multiplier = Multiplier(made.values, made.shifts, ())
    finish = replace(finish, multiplier=multiplier)
    return replace(spec, requantise=finish), made.weights, made.bias


def rounding_of(spec: Convolution, weights: Any, bias: Array) -> Rounding | None:
    """Return how the library rounds to the layer's result, None if it cannot."""
    multiplier = spec.requantise.multiplier
    return rounding(
        spec.requantise.rounding,
        multiplier.value,
        multiplier.shift,
        largest_sums(weights, bias, spec.dtype),
    )


def _convolution(name: str, spec: Convolution, constants: Sequence[Array]) -> Tuned | None:
    weights, bias = centred(constants[0], spec.weight_zero), constants[1]
    if weights is None or len(spec.pieces) > MOST_PIECES or not is_eight_bits(spec):
        return None
    spec, weights, bias = in_small_numbers(spec, weights, bias)
    how = rounding_of(spec, weights, bias)
    if how is None:
        return None
    kh, kw = spec.weight_shape[:2]
    channels = sum(shape[3] for shape in spec.pieces)
    flat = weights.reshape(-1, spec.channels)
    blocks = -(-flat.shape[0] // 4)
    plain = (kh, kw) == (1, 1) and spec.strides == (1, 1) and not any(spec.padding)
    in_place = plain and len(spec.pieces) == 1 and channels % 4 == 0
    fields = {
        "pieces": len(spec.pieces),
        **_geometry(spec),
        "out_channels": spec.channels,
        "channels": channels,
        "blocks": blocks,
        "in_place": int(in_place),
        "input_zero": spec.input_zero,
        "to": target_of(spec, how),
        "piece_channels": f"{{{', '.join(str(shape[3]) for shape in spec.pieces)}}}",
    }
    workspace = 0 if in_place else 8 * blocks
    pieces = [f"x{i}" for i in range(len(spec.pieces))]
    ctype = f"{spec.dtype}_t"
    columns = "NULL" if in_place else f"({ctype} *)(void *)workspace"
    body = (
        f"    static const convolution_{spec.dtype} c = {initialiser(fields)};\n"
        f"    const {ctype} *const pieces[] = {{{', '.join(pieces)}}};\n"
        f"    convolve_{spec.dtype}(&c, pieces, w, b, m, r, (uint8_t *)out, {columns});\n"
    )
    kernel = _kernel(name, spec, pieces, "convolution", body, workspace > 0)
    return Tuned(kernel, (paired(flat), bias, how.multipliers, how.shifts), workspace)


def _depthwise(name: str, spec: Convolution, constants: Sequence[Array]) -> Tuned | None:
    weights, bias = centred(constants[0], spec.weight_zero), constants[1]
    channels = spec.weight_shape[2]
    if weights is None or not has_few_taps(spec) or not is_eight_bits(spec):
        return None
    spec, weights, bias = in_small_numbers(spec, weights, bias)
    how = rounding_of(spec, weights, bias)
    if how is None:
        return None
    fields = {**_geometry(spec), "channels": channels, "to": target_of(spec, how)}
    body = (
        f"    static const depthwise_{spec.dtype} d = {initialiser(fields)};\n"
        f"    depthwise_convolve_{spec.dtype}(&d, x0, w, b, m, r, o, (uint8_t *)out);\n"
    )
    outside = np.full(channels, spec.input_zero, spec.dtype)
    kernel = _kernel(name, spec, ["x0"], "depthwise", body, False, outside=True)
    return Tuned(kernel, (weights, bias, how.multipliers, how.shifts, outside), 0)


def has_few_taps(spec: Convolution) -> bool:
    """Whether the library has a depthwise convolution like this: no channel multiplier."""
    kh, kw, channels = spec.weight_shape
    return len(spec.pieces) == 1 and spec.pieces[0][3] == channels and kh * kw <= MOST_TAPS


def _geometry(spec: Convolution) -> dict[str, int]:
    _, height, width, _ = spec.sizes(spec.pieces[0])
    _, out_height, out_width, _ = spec.sizes(spec.output_shape)
    return {
        "height": height,
        "width": width,
        "out_height": out_height,
        "out_width": out_width,
        "kernel_height": spec.weight_shape[0],
        "kernel_width": spec.weight_shape[1],
        "stride_y": spec.strides[0],
        "stride_x": spec.strides[1],
        "dilation_y": spec.dilation[0],
        "dilation_x": spec.dilation[1],
        "top": spec.padding[0],
        "left": spec.padding[1],
    }


def target_of(spec: Convolution, how: Rounding) -> str:
    """Return the C initialiser of a ``requantisation``."""
    r = spec.requantise
    return f"{{{r.zero_point}, {r.low}, {r.high}, {how.name}, {how.step}}}"


def initialiser(fields: dict[str, Any]) -> str:
    """Return a C initialiser of a structure."""
    rows = "".join(f"        .{name} = {value},\n" for name, value in fields.items())
    return f"{{\n{rows}    }}"


def _kernel(
    name: str,
    spec: Convolution,
    pieces: Sequence[str],
    library: str,
    body: str,
    workspace: bool,
    outside: bool = False,
) -> Kernel:
    params = parameters(spec, pieces, outside)
    params += [Param("workspace", "uint8", False)] if workspace else []
    sums = "products" if library == "convolution" else "taps"
    support = ("dot.h", "requantise.h", f"{sums}.h:{spec.dtype}", f"{library}.h:{spec.dtype}")
    return Kernel(name, tuple(params), body, support)


def parameters(spec: Convolution, data: Sequence[str], outside: bool) -> list[Param]:
    """Return the parameters of a library kernel: data, constants, the row outside, result."""
    params = [Param(name, spec.dtype, True) for name in data]
    params += [Param("w", "int8", True), Param("b", "int32", True)]
    params += [Param("m", "int32", True), Param("r", "int8", True)]
    params += [Param("o", spec.dtype, True)] if outside else []
    return [*params, Param("out", spec.requantise.dtype, False)]
