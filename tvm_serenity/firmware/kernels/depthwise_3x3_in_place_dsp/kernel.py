"""Depthwise convolutions of 3x3 for the DSP extension that read inputs in place.

The kernel needs neither a plane nor workspace. It finds the rows of each window anew, so it suits
rows of few pixels and many channels, and windows that share few inputs. For other layers
``depthwise_3x3_planes_dsp`` is faster.
"""

import numpy as np

from tvm_serenity.firmware.integers import STATIC
from tvm_serenity.firmware.isa import Isa
from tvm_serenity.firmware.kernels.parts import epilogue, planes
from tvm_serenity.firmware.kernels.parts.calls import Shape, initialiser, lines_fields, written
from tvm_serenity.firmware.kernels.parts.counts import CASES_OF_STRIDE, case_of_stride, of_pixels
from tvm_serenity.firmware.kernels.parts.epilogue import refusal
from tvm_serenity.firmware.kernels.parts.layer import DEPTHWISE, RoundedConvolution
from tvm_serenity.firmware.kernels.parts.overlap import in_order
from tvm_serenity.firmware.kernels.parts.packing import zeros
from tvm_serenity.firmware.kernels.record import KernelCall, LibraryKernel
from tvm_serenity.firmware.program import Array

LANES = 4
"""Channels that are computed at a time."""


def refuses(layer: RoundedConvolution) -> str:
    """Return why the kernel does not compute ``layer``, "" if it does."""
    return planes.refuses(layer) or (refusal(layer) if layer.spec.channels % LANES else "")


def calls_of(name: str, layer: RoundedConvolution) -> list[KernelCall]:
    """Return the call for ``layer``."""
    spec, dtype = layer.spec, layer.spec.dtype
    lines = [f"{STATIC} direct_{dtype} d = {initialiser(_fields(layer))};"]
    if layer.by_rows:
        names = ["x0", "x1", "x2"]
        lines.append(f"const {dtype}_t *const rows[] = {{x0, x1, x2}};")
        lines.append(f"depthwise_direct_{dtype}(&d, rows, q, o, out);")
    else:
        names = ["x0"]
        lines.append(f"{STATIC} lines_{dtype} l = {lines_fields(spec)};")
        lines.append(f"depthwise_direct_lines_{dtype}(&d, &l, x0, q, o, out);")
    shape = Shape(names, [("q", "int32"), ("o", dtype)])
    kernel = written(name, layer, "depthwise_3x3_in_place_dsp/kernel.h", shape, lines)
    return [KernelCall(kernel, (pack(layer), zeros(layer, spec.channels)))]


def _fields(layer: RoundedConvolution) -> dict[str, object]:
    """Return the fields of the C structure of a layer."""
    spec, dtype = layer.spec, layer.spec.dtype
    positive = "_positive" if layer.clamps_at_zero else ""
    two = "near" if spec.strides[1] == 1 else "two"
    return {
        "width": spec.pieces[0][2],
        "out_width": spec.output_shape[2],
        "channels": spec.channels,
        "stride_x": spec.strides[1],
        "left": spec.padding[1],
        "low": spec.requantise.low,
        "high": spec.requantise.high,
        "two": f"direct_{two}{positive}_{dtype}",
        "one": f"direct_one{positive}_{dtype}",
    }


def pack(layer: RoundedConvolution) -> Array:
    """Return biases, weights and requantisation of the channels: ``[channels / 4, 30]``."""
    groups = layer.spec.channels // LANES
    bias = (2 * layer.bias.astype(np.int64)).reshape(groups, LANES)
    taps = 2 * layer.weights.reshape(9, groups, LANES).astype("<i2").transpose(1, 0, 2)
    words = np.ascontiguousarray(taps[..., [0, 2, 1, 3]]).view("<i4").reshape(groups, -1)
    each = epilogue.numbers(layer).reshape(groups, -1)
    parts = [bias, words.astype(np.int64), each]
    return np.concatenate(parts, axis=1).astype(np.uint32).view(np.int32)


KERNEL = LibraryKernel(
    name="depthwise_3x3_in_place_dsp",
    computes=DEPTHWISE,
    isa=frozenset({Isa.DSP}),
    refuses=refuses,
    calls=calls_of,
    passages=lambda layer, _options: in_order(layer, 2),
    cases=CASES_OF_STRIDE,
    case=case_of_stride,
    counts=lambda layer, _options: of_pixels(layer, LANES),
)
