"""Dense layers and 1x1 convolutions with vectors, from weights that are not 0."""

import numpy as np

from tvm_serenity.firmware.integers import STATIC, integer
from tvm_serenity.firmware.isa import Isa
from tvm_serenity.firmware.kernels.parts.calls import Shape, initialiser, target, written
from tvm_serenity.firmware.kernels.parts.counts import TYPES, case_of_type, lines_of
from tvm_serenity.firmware.kernels.parts.layer import CONVOLUTION, LANES, RoundedConvolution
from tvm_serenity.firmware.kernels.parts.overlap import in_order
from tvm_serenity.firmware.kernels.parts.packing import by_sources, numbers
from tvm_serenity.firmware.kernels.parts.sparse import DENSE, supported
from tvm_serenity.firmware.kernels.record import KernelCall, KernelOptions, LibraryKernel
from tvm_serenity.firmware.program import Array

WINDOWS = 4
"""Windows that are computed together."""
SEGMENT = 256
"""Inputs that a byte indexes."""
WEIGHT_BYTES, COUNT_BYTES = 2, 2
"""The bytes of a weight with its index, and of the number of weights of a segment."""


def refuses(layer: RoundedConvolution) -> str:
    """Return why the kernel does not compute ``layer``, "" if it does."""
    if reason := supported(layer):
        return reason
    if layer.narrow or not layer.rounding.small:
        return "supports only weights of 8 bits, sums below 2^30 and right shifts"
    size = WEIGHT_BYTES * np.count_nonzero(layer.weights)
    size += COUNT_BYTES * layer.spec.channels * _segments(layer)
    return DENSE if size >= layer.weights.size else ""


def _segments(layer: RoundedConvolution) -> int:
    """Return the number of segments of the inputs."""
    return -(-layer.inputs // SEGMENT)


def calls_of(name: str, layer: RoundedConvolution) -> list[KernelCall]:
    """Return the call for ``layer``."""
    dtype, spec = layer.spec.dtype, layer.spec
    fields = {
        "channels": layer.inputs,
        "out_channels": spec.channels,
        "segments": _segments(layer),
        "to": target(layer),
    }
    pixels = integer(spec.output_shape[1] * spec.output_shape[2])
    if layer.by_rows:
        pixels = f"{integer(spec.output_shape[2])} * (int32_t)*n"
    lines = [
        f"{STATIC} sparse_segments_{dtype} c = {initialiser(fields)};",
        f"const sparse_segments_with_{dtype} with = {{w, i, k, b, m, r}};",
        f"gather_windows_{dtype}(&c, &with, x0, (uint8_t *)out, {pixels});",
    ]
    takes = [("w", "int8"), ("i", "uint8"), ("k", "uint16")]
    takes += [("b", "int32"), ("m", "int32"), ("r", "int8")]
    kernel = written(name, layer, "sparse_mve/kernel.h", Shape(["x0"], takes, layer.by_rows), lines)
    return [KernelCall(kernel, pack(layer))]


def pack(layer: RoundedConvolution) -> tuple[Array, ...]:
    """Return weights, indices and counts, biases for int8 inputs, multipliers and shifts."""
    weights = np.ascontiguousarray(by_sources(layer).T)
    output, at = np.nonzero(weights)
    bias, multipliers, shifts = numbers(layer)
    if layer.spec.dtype == "uint8":
        sums = 128 * weights.sum(axis=1, dtype=np.int64)
        bias = (bias + np.pad(sums, (0, bias.size - sums.size))).astype(np.int32)
    values = weights[output, at].astype(np.int8)
    return values, (at % SEGMENT).astype(np.uint8), _counts(layer), bias, multipliers, shifts


def _counts(layer: RoundedConvolution) -> Array:
    """Return the number of weights that are not 0: ``[outputs, segments]``."""
    filled = by_sources(layer).T != 0
    padded = np.pad(filled, ((0, 0), (0, -layer.inputs % SEGMENT)))
    return np.asarray(padded.reshape(len(filled), -1, SEGMENT).sum(axis=2, dtype=np.uint16))


def _tiles(layer: RoundedConvolution) -> tuple[int, int]:
    """Return the number of tiles of four windows, and of one."""
    lines, pixels = lines_of(layer)
    return divmod(lines * pixels, WINDOWS)


def counts(layer: RoundedConvolution, _options: KernelOptions) -> list[float]:
    """Return the counts of calls, and of tiles of four windows and of one with their work."""
    weights, outputs = _counts(layer).astype(int), layer.spec.channels
    vectors, runs = int((-(-weights // LANES)).sum()), int(np.count_nonzero(weights))
    each = (1, outputs, runs, vectors)
    return [1, *(tiles * count for tiles in _tiles(layer) for count in each)]


def gathered(layer: RoundedConvolution) -> int:
    """Return the number of inputs that a call gathers."""
    fours, ones = _tiles(layer)
    return (WINDOWS * fours + ones) * int(np.count_nonzero(layer.weights))


KERNEL = LibraryKernel(
    name="sparse_mve",
    computes=CONVOLUTION,
    isa=frozenset({Isa.MVE}),
    refuses=refuses,
    calls=calls_of,
    passages=lambda layer, _options: in_order(layer, WINDOWS),
    cases=TYPES,
    case=case_of_type,
    counts=counts,
    gathered=gathered,
    driven=True,
)
