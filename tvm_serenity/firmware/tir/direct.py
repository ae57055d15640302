"""The library's kernel for a row of a depthwise convolution of 3x3 that reads inputs in place.

It needs neither a plane nor workspace; for each pixel its windows are found anew, so it is for rows
of few pixels and many channels. Others go by planes (``short.planes``).
"""

import numpy as np

from tvm_serenity.firmware.program import Array, Kernel, Param
from tvm_serenity.firmware.tir import library, short
from tvm_serenity.firmware.tir.library import RoundedConvolution
from tvm_serenity.firmware.tir.short import Fast

LANES = 4
"""Channels that are made at a time."""
PIXEL, PIXEL_LANES = 85, 108
"""Instructions of a pixel, and of four channels of it."""
CHANNEL, COPIED, MADE = 230, 3.5, 21
"""Of a channel in a plane; of an input that is copied there; of a result."""


def direct(name: str, layer: RoundedConvolution) -> Fast | None:
    """Return the kernel of a row, None where there is none or planes take fewer instructions."""
    spec, dtype = layer.spec, layer.spec.dtype
    if not layer.by_rows or not short.has_planes(layer) or spec.channels % LANES:
        return None
    width, out_width, channels = spec.pieces[0][2], spec.output_shape[2], spec.channels
    here = out_width * (PIXEL + channels // LANES * PIXEL_LANES)
    if here > channels * (CHANNEL + 3 * width * COPIED + out_width * MADE):
        return None
    fields = {
        "width": width,
        "out_width": out_width,
        "channels": channels,
        "stride_x": spec.strides[1],
        "left": spec.padding[1],
        "low": spec.requantise.low,
        "high": spec.requantise.high,
    }
    lines = (
        f"static const direct_{dtype} d = {library.initialiser(fields)};",
        f"const {dtype}_t *const rows[] = {{x0, x1, x2}};",
        f"depthwise_direct_{dtype}(&d, rows, q, o, out);",
    )
    params = [Param(at, dtype, True) for at in ("x0", "x1", "x2")]
    params += [Param("q", "int32", True), Param("o", dtype, True), Param("out", dtype, False)]
    body = "".join(f"    {line}\n" for line in lines)
    files = ("dot.h", "requantise.h", "short.h", f"direct.h:{dtype}")
    constants = (numbers_of(layer), np.full(channels, spec.input_zero, dtype))
    return Fast(Kernel(name, tuple(params), body, files), constants, 0)


def numbers_of(layer: RoundedConvolution) -> Array:
    """Return the numbers of channels, as ``direct.h`` wants them: ``[channels / 4, 30]``."""
    groups = layer.spec.channels // LANES
    bias = (2 * layer.bias.astype(np.int64)).reshape(groups, LANES)
    taps = 2 * layer.weights.reshape(9, groups, LANES).astype("<i2").transpose(1, 0, 2)
    words = np.ascontiguousarray(taps[..., [0, 2, 1, 3]]).view("<i4").reshape(groups, -1)
    each = short.numbers(layer).reshape(groups, -1)
    parts = [bias, words.astype(np.int64), each]
    return np.concatenate(parts, axis=1).astype(np.uint32).view(np.int32)
