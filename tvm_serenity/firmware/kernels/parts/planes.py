"""Depthwise convolutions of 3x3, one channel at a time (``planes.h``).

A plane holds the rows of a channel as 16-bit values, with padding: all rows, or a ring of a few
rows. It lies on the stack if it fits, else in workspace.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tvm_serenity.firmware.integers import STATIC, extent
from tvm_serenity.firmware.isa import Isa
from tvm_serenity.firmware.kernels.pack import BLOCK
from tvm_serenity.firmware.kernels.parts import epilogue
from tvm_serenity.firmware.kernels.parts.calls import Shape, initialiser, written
from tvm_serenity.firmware.kernels.parts.counts import CASES_OF_STRIDE, case_of_stride, clamped
from tvm_serenity.firmware.kernels.parts.epilogue import is_short, refusal
from tvm_serenity.firmware.kernels.parts.layer import DEPTHWISE, RoundedConvolution
from tvm_serenity.firmware.kernels.parts.overlap import by_channels
from tvm_serenity.firmware.kernels.record import KernelCall, KernelOptions, LibraryKernel
from tvm_serenity.firmware.program import Array

PLANE_BYTES = 432
"""The maximum bytes of a plane on the stack: four rows of 54 inputs."""


@dataclass(frozen=True)
class Lines:
    """The C ``function`` in ``file`` that computes lines from a plane.

    ``offset`` is added to the inputs in the plane.
    """

    file: str
    function: str
    offset: int = 0


def kernel(
    name: str, isa: frozenset[Isa], lines_of: Callable[[RoundedConvolution], Lines]
) -> LibraryKernel:
    """Return the record of a kernel with planes; ``lines_of``: the C function for a layer."""
    return LibraryKernel(
        name=name,
        computes=DEPTHWISE,
        isa=isa,
        refuses=refuses,
        calls=lambda kernel_name, layer: calls_of(kernel_name, layer, lines_of(layer)),
        passages=lambda layer, _options: by_channels(layer),
        cases=CASES_OF_STRIDE,
        case=case_of_stride,
        counts=counts,
    )


def calls_of(name: str, layer: RoundedConvolution, making: Lines) -> list[KernelCall]:
    """Return the calls for ``layer``: with a plane of all rows, and with a ring of a few rows."""
    pitch = _pitch(layer)
    most, held = _rows_read(layer), PLANE_BYTES // (2 * pitch)
    rows = [most] if most <= held else [most] * (not layer.by_rows) + [held] * (held >= 3)
    return [_call(name, layer, making, count) for count in rows]


def _pitch(layer: RoundedConvolution) -> int:
    """Return the elements from a row of a plane to the next row."""
    stride, width = layer.spec.strides[1], layer.spec.output_shape[2]
    return -(-max(width * stride + 4 - stride, 4) // BLOCK) * BLOCK


def _rows_read(layer: RoundedConvolution) -> int:
    """Return the number of rows that the layer reads, which a plane of all rows holds."""
    lines = 1 if layer.by_rows else layer.spec.output_shape[1]
    return (lines - 1) * layer.spec.strides[0] + 3


def _call(name: str, layer: RoundedConvolution, making: Lines, rows: int) -> KernelCall:
    """Return the call with ``rows`` rows in the plane."""
    dtype, pitch = layer.spec.dtype, _pitch(layer)
    on_stack = 2 * rows * pitch <= PLANE_BYTES
    names = ["x0", "x1", "x2"] if layer.by_rows else ["x0"]
    given = "NULL, rows" if layer.by_rows else "x0, NULL"
    lines = [
        f"{STATIC} planes_{dtype} p = {initialiser(_fields(layer, making, rows))};",
        f"int16_t plane[{extent(rows * pitch)}] __attribute__((aligned(8)));"
        if on_stack
        else "int16_t *const plane = (int16_t *)(void *)workspace;",
        *[f"const {dtype}_t *const rows[] = {{x0, x1, x2}};"] * layer.by_rows,
        f"depthwise_planes_{dtype}(&p, {given}, q, plane, out);",
    ]
    shape = Shape(names, [("q", "int32")], workspace=not on_stack)
    kernel = written(name, layer, making.file, shape, lines)
    options = KernelOptions(plane_rows=rows, ring=rows < _rows_read(layer))
    workspace = 0 if on_stack else 2 * rows * pitch
    return KernelCall(kernel, (_channel_numbers(layer, making.offset),), workspace, options)


def _fields(layer: RoundedConvolution, making: Lines, rows: int) -> dict[str, object]:
    """Return the fields of the C structure of a layer."""
    spec = layer.spec
    _, lines, width, channels = spec.output_shape
    return {
        "height": 3 if layer.by_rows else spec.pieces[0][1],
        "width": spec.pieces[0][2],
        "channels": channels,
        "out_height": 1 if layer.by_rows else lines,
        "out_width": width,
        "stride_x": spec.strides[1],
        "stride_y": spec.strides[0],
        "top": 0 if layer.by_rows else spec.padding[0],
        "left": spec.padding[1],
        "plane_rows": rows,
        "pitch": _pitch(layer),
        "input_zero": spec.input_zero,
        "low": spec.requantise.low,
        "high": spec.requantise.high,
        "offset": making.offset,
        "make": f"{making.function}_{spec.strides[1]}_{spec.dtype}",
    }


def refuses(layer: RoundedConvolution) -> str:
    """Return why the kernels with planes do not compute ``layer``, "" if they do."""
    return "" if _covered(layer) else refusal(layer)


def _covered(layer: RoundedConvolution) -> bool:
    spec = layer.spec
    covered = spec.weight_shape[:2] == (3, 3) and spec.dilation == (1, 1) and len(spec.pieces) == 1
    if not covered or spec.pieces[0][3] != spec.channels or layer.narrow or not is_short(layer):
        return False
    if not layer.rounding.twice_small:
        return False
    return spec.strides[1] <= 2 and spec.strides[0] <= 3 and spec.padding[1] <= 2


def _channel_numbers(layer: RoundedConvolution, offset: int) -> Array:
    """Return bias, requantisation and weights of each channel, as ``plane.h`` reads them."""
    multipliers, words = epilogue.numbers(layer).T
    taps = layer.weights.reshape(3, 3, -1).transpose(2, 0, 1)
    weights = np.zeros((layer.spec.channels, 3, 4), np.int8)
    weights[..., :3] = taps
    weights[..., 3] = words.astype("<i4")[:, None].view(np.int8)[:, :3]
    bias = layer.bias.astype(np.int64) - offset * taps.sum(axis=(1, 2), dtype=np.int64)
    first = np.stack([2 * bias, multipliers], axis=1).astype(np.uint32).view(np.int32)
    return np.concatenate([first, weights.reshape(-1, 12).view(np.int32)], axis=1)


def counts(layer: RoundedConvolution, options: KernelOptions) -> list[float]:
    """Return the counts of the kernel's work for ``layer``, in the order of its prices."""
    spec, held = layer.spec, options.plane_rows
    channels, width = spec.channels, spec.output_shape[2]
    lines = 1 if layer.by_rows else spec.output_shape[1]
    stride, height = spec.strides[0], 3 if layer.by_rows else spec.pieces[0][1]
    rows = min((lines - 1) * stride + 3, height)
    most = (held - 3) // stride + 1
    chunks = -(-lines // most)
    moved = (chunks - 1) * max(3 - stride, 0) * (width * spec.strides[1] + 3)
    rest = width % 4
    return [
        channels,
        channels * chunks,
        channels * lines,
        channels * lines * (width // 4),
        *(channels * lines * (rest == n) for n in (1, 2, 3)),
        channels * rows,
        channels * rows * spec.pieces[0][2],
        channels * moved,
        held * width,
        channels * lines * width * (not layer.clamps_at_zero),
        clamped(layer),
    ]
