"""Row kernels of the library (``library/*_row.h``) in place of those cut out of TIR.

They sum up the same products as the library's whole kernels, two pixels of two channels at a time,
but read each row under the window from where it lies. What they do not cover stays as it is.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm_serenity.firmware.pack import centred, paired
from tvm_serenity.firmware.program import Array, Kernel, Param
from tvm_serenity.firmware.tir.tuned import (
    Tuned,
    as_convolution,
    has_few_taps,
    in_small_numbers,
    initialiser,
    is_eight_bits,
    parameters,
    rounding_of,
    target_of,
)
from tvm_serenity.kernels.convolution import Convolution, Dense
from tvm_serenity.kernels.rows import RowKernel
from tvm_serenity.kernels.spec_read import spec_of

COUNT = "n"
"""The last parameter of kernels that make several rows which follow each other: how many."""
NO_BORDER = 1 << 30
"""A width that no window leaves."""
MOST_COLUMN_BYTES = 320
"""Windows that must be gathered and are larger than this stay with the kernels of TIR."""


def tuned_row(name: str, function: Any, arguments: Sequence[Any], rows: RowKernel) -> Tuned | None:
    """Return the library's form of a row kernel and the constants it takes, None if it has none.

    ``arguments`` are those of the whole kernel's call, as arrays where they are constants, else
    None.
    """
    spec = spec_of(function, arguments)
    constants = [a for a in arguments if a is not None]
    if not isinstance(spec, Convolution) or spec.layout != "NHWC" or not is_eight_bits(spec):
        return None
    if len(rows.variants) != 1 or len(rows.slots) != len(spec.pieces) * spec.weight_shape[0]:
        return None
    weights = centred(constants[0], spec.weight_zero)
    if weights is None:
        return None
    spec, weights, bias = in_small_numbers(spec, weights, constants[1])
    if spec.depthwise and spec.pieces[0][3] > 1:
        return _depthwise(name, spec, weights, bias)
    if spec.groups == 1 or spec.depthwise:
        return _convolution(name, spec, weights, bias, merges=_merges(spec))
    return None


def tuned_pixels(name: str, function: Any, arguments: Sequence[Any]) -> Tuned | None:
    """Return a dense layer or a 1x1 convolution of one row as a row kernel, None if it is neither.

    So the whole kernels of the library are in the flash only where a layer needs them.
    """
    spec = spec_of(function, arguments)
    spec = as_convolution(spec) if isinstance(spec, Dense) else spec
    if not isinstance(spec, Convolution) or spec.layout != "NHWC" or not is_eight_bits(spec):
        return None
    if not _merges(spec) or spec.output_shape[:2] != (1, 1) or spec.groups != 1:
        return None
    constants = [a for a in arguments if a is not None]
    weights = centred(constants[0], spec.weight_zero)
    if weights is None:
        return None
    return _convolution(name, *in_small_numbers(spec, weights, constants[1]), merges=False)


def _convolution(
    name: str, spec: Convolution, weights: Any, bias: Array, *, merges: bool
) -> Tuned | None:
    how = rounding_of(spec, weights, bias)
    channels = [shape[3] for shape in spec.pieces for _ in range(spec.weight_shape[0])]
    if how is None or spec.dilation[1] != 1 or len(channels) > 10:
        return None
    flat = _by_sources(spec, weights.reshape(*spec.weight_shape[:2], -1, spec.channels))
    in_place = all(count % 4 == 0 for count in channels)
    depth = -(-flat.shape[0] // 4) * 4
    if not in_place and 2 * depth > MOST_COLUMN_BYTES:
        return None
    fields = {
        "sources": len(channels),
        "width": NO_BORDER if merges else spec.pieces[0][2],
        "out_channels": spec.channels,
        "kernel_width": spec.weight_shape[1],
        "stride_x": spec.strides[1],
        "left": spec.padding[1],
        "depth": 0 if in_place else depth,
        "to": target_of(spec, how),
        "channels": f"{{{', '.join(map(str, channels))}}}",
    }
    ctype = f"{spec.dtype}_t"
    names = [f"x{i}" for i in range(len(channels))]
    pixels = str(spec.output_shape[2])
    if merges:
        pixels = f"{pixels} * (int32_t)*n"
    columns, declared = "NULL", ""
    if not in_place:
        columns, declared = "columns", f"    {ctype} columns[{2 * depth}] = {{0}};\n"
    body = (
        f"    static const convolution_row_{spec.dtype} c = {initialiser(fields)};\n"
        f"    const {ctype} *const rows[] = {{{', '.join(names)}}};\n{declared}"
        f"    run_{spec.dtype} runs[{_runs(spec, len(channels)) if in_place else 1}];\n"
        f"    convolve_row_{spec.dtype}(\n"
        f"        &c, rows, w, b, m, r, o, (uint8_t *)out, {pixels}, {columns}, runs);\n"
    )
    longest = spec.weight_shape[1] * max(channels) if any(spec.padding[1::2]) else 1
    outside = np.full(longest, spec.input_zero, spec.dtype)
    kernel = _kernel(name, spec, names, "products", "convolution_row", body, merges)
    return Tuned(kernel, (paired(flat), bias, how.multipliers, how.shifts, outside), 0)


def _merges(spec: Convolution) -> bool:
    """Whether rows that follow each other can be made as one: each pixel from its own."""
    plain = spec.weight_shape[:2] == (1, 1) and spec.strides == (1, 1)
    return plain and not any(spec.padding)


def _runs(spec: Convolution, sources: int) -> int:
    """The most runs of a window: of each source what is before, inside and behind the image."""
    return sources * (3 if any(spec.padding[1::2]) else 1)


def _by_sources(spec: Convolution, weights: Any) -> Any:
    """The weights ``[inputs, outputs]`` in the order windows are read: by piece, row, column."""
    parts, first = [], 0
    for shape in spec.pieces:
        count = shape[3] if len(spec.pieces) > 1 else weights.shape[2]
        parts += [
            weights[ky, :, first : first + count].reshape(-1, spec.channels)
            for ky in range(spec.weight_shape[0])
        ]
        first += count
    return np.concatenate(parts)


def _depthwise(name: str, spec: Convolution, weights: Any, bias: Array) -> Tuned | None:
    kh, kw, channels = spec.weight_shape
    how = rounding_of(spec, weights, bias)
    if how is None or not has_few_taps(spec):
        return None
    fields = {
        "width": spec.pieces[0][2],
        "channels": channels,
        "out_width": spec.output_shape[2],
        "kernel_height": kh,
        "kernel_width": kw,
        "stride_x": spec.strides[1],
        "dilation_x": spec.dilation[1],
        "left": spec.padding[1],
        "to": target_of(spec, how),
    }
    ctype = f"{spec.dtype}_t"
    names = [f"x{i}" for i in range(kh)]
    body = (
        f"    static const depthwise_row_{spec.dtype} d = {initialiser(fields)};\n"
        f"    const {ctype} *const rows[] = {{{', '.join(names)}}};\n"
        f"    depthwise_row_convolve_{spec.dtype}(&d, rows, w, b, m, r, o, (uint8_t *)out);\n"
    )
    outside = np.full(channels, spec.input_zero, spec.dtype)
    kernel = _kernel(name, spec, names, "taps", "depthwise_row", body)
    return Tuned(kernel, (weights, bias, how.multipliers, how.shifts, outside), 0)


def _kernel(
    name: str,
    spec: Convolution,
    rows: Sequence[str],
    sums: str,
    library: str,
    body: str,
    merges: bool = False,
) -> Kernel:
    params = parameters(spec, rows, outside=True)
    params += [Param(COUNT, "uint32", True)] if merges else []
    typed = (f"{file}.h:{spec.dtype}" for file in ("requantise_row", sums, library))
    return Kernel(name, tuple(params), body, ("dot.h", "requantise.h", *typed))
