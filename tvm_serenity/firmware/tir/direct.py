"""The library's kernel for a depthwise convolution of 3x3 that reads inputs in place.

It needs neither a plane nor workspace; for each pixel its windows are found anew, so it is for rows
of few pixels and many channels, and for windows that share few inputs; others are cheaper by
planes (``short.planes``).
"""

import numpy as np

from tvm_serenity.firmware.program import Array, Kernel, Param
from tvm_serenity.firmware.tir import library, short
from tvm_serenity.firmware.tir.library import RoundedConvolution
from tvm_serenity.firmware.tir.short import Fast

LANES = 4
"""Channels that are made at a time."""


def direct(name: str, layer: RoundedConvolution) -> Fast | None:
    """Return the kernel, None where there is none."""
    spec, dtype = layer.spec, layer.spec.dtype
    if not short.has_planes(layer) or spec.channels % LANES:
        return None
    (_, _, width, channels), out_width = spec.pieces[0], spec.output_shape[2]
    positive = "_positive" if layer.clamps_at_zero else ""
    two = "near" if spec.strides[1] == 1 else "two"
    fields = {
        "width": width,
        "out_width": out_width,
        "channels": channels,
        "stride_x": spec.strides[1],
        "left": spec.padding[1],
        "low": spec.requantise.low,
        "high": spec.requantise.high,
        "two": f"direct_{two}{positive}_{dtype}",
        "one": f"direct_one{positive}_{dtype}",
    }
    text = [f"static const direct_{dtype} d = {library.initialiser(fields)};"]
    if layer.by_rows:
        names = ["x0", "x1", "x2"]
        text.append(f"const {dtype}_t *const rows[] = {{x0, x1, x2}};")
        text.append(f"depthwise_direct_{dtype}(&d, rows, q, o, out);")
    else:
        names = ["x0"]
        text.append(f"static const lines_{dtype} l = {library.lines_fields(spec)};")
        text.append(f"depthwise_direct_lines_{dtype}(&d, &l, x0, q, o, out);")
    params = [Param(at, dtype, True) for at in names]
    params += [Param("q", "int32", True), Param("o", dtype, True), Param("out", dtype, False)]
    body = "".join(f"    {line}\n" for line in text)
    files = ("dot.h", "requantise.h", "short.h", f"rows.h:{dtype}", f"direct.h:{dtype}")
    constants = (numbers_of(layer), np.full(channels, spec.input_zero, dtype))
    return Fast("direct", Kernel(name, tuple(params), body, files), constants, 0)


def numbers_of(layer: RoundedConvolution) -> Array:
    """Return the numbers of channels, as ``direct.h`` wants them: ``[channels / 4, 30]``."""
    groups = layer.spec.channels // LANES
    bias = (2 * layer.bias.astype(np.int64)).reshape(groups, LANES)
    taps = 2 * layer.weights.reshape(9, groups, LANES).astype("<i2").transpose(1, 0, 2)
    words = np.ascontiguousarray(taps[..., [0, 2, 1, 3]]).view("<i4").reshape(groups, -1)
    each = short.numbers(layer).reshape(groups, -1)
    parts = [bias, words.astype(np.int64), each]
    return np.concatenate(parts, axis=1).astype(np.uint32).view(np.int32)
