"""Dense layers and 1x1 convolutions on every core, from weights of 4 or 8 bits that are not 0."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tvm_serenity.firmware.integers import STATIC, integer
from tvm_serenity.firmware.isa import ANY
from tvm_serenity.firmware.kernels.parts.calls import Shape, initialiser, target, written
from tvm_serenity.firmware.kernels.parts.counts import NARROW_TYPES, case_of_type, clamped, lines_of
from tvm_serenity.firmware.kernels.parts.layer import CONVOLUTION, RoundedConvolution
from tvm_serenity.firmware.kernels.parts.overlap import in_order
from tvm_serenity.firmware.kernels.parts.packing import by_sources, numbers
from tvm_serenity.firmware.kernels.record import KernelCall, KernelOptions, LibraryKernel
from tvm_serenity.firmware.program import Array

WINDOWS = 4
"""Windows that are computed together."""
MOST_GAP, MOST_PAIRS = 15, (1 << 16) - 1
"""The limits of a gap, in 4 bits, and of the pairs of an output, in two bytes."""
HEAD_BYTES = 2


def refuses(layer: RoundedConvolution) -> str:
    """Return why the kernel does not compute ``layer``, "" if it does."""
    if not layer.plain or layer.sources != 1 or layer.spec.groups != 1:
        return "supports only dense layers and 1x1 convolutions of one tensor, of stride 1"
    outputs = layer.spec.channels
    dense = layer.inputs * outputs // (2 if layer.narrow else 1)
    if 2 * dense <= _pair_bytes(layer) * np.count_nonzero(layer.weights):
        return DENSE
    pairs = -(-_entries(layer).counts // 2)
    if _pair_bytes(layer) * int(pairs.sum()) + HEAD_BYTES * outputs >= dense:
        return DENSE
    return "" if int(pairs.max()) <= MOST_PAIRS else f"supports only {MOST_PAIRS} pairs of weights"


DENSE = "supports only weights that take fewer bytes without their zeros"


def _pair_bytes(layer: RoundedConvolution) -> int:
    """Return the bytes of two gaps and two weights."""
    return 2 if layer.narrow else 3


@dataclass(frozen=True)
class _Entries:
    """Gaps and weights of all outputs, one output after the other; ``counts``: of each output.

    A gap longer than ``MOST_GAP`` has entries of weight 0.
    """

    gaps: NDArray[np.uint8]
    weights: NDArray[np.int8]
    counts: NDArray[np.int64]


def _entries(layer: RoundedConvolution) -> _Entries:
    """Return the weights that are not 0, with their gaps."""
    weights = np.ascontiguousarray(by_sources(layer).T)
    output, at = np.nonzero(weights)
    follows = np.diff(output, prepend=-1) == 0
    gap = at - np.where(follows, np.roll(at, 1), 0)
    more = gap // MOST_GAP
    last = np.cumsum(more + 1) - 1
    total = int(last[-1]) + 1 if len(last) else 0
    gaps, values = np.full(total, MOST_GAP, np.uint8), np.zeros(total, np.int8)
    gaps[last], values[last] = gap % MOST_GAP, weights[output, at]
    counts = np.bincount(output, more + 1, minlength=len(weights)).astype(np.int64)
    return _Entries(gaps, values, counts)


def pack(layer: RoundedConvolution) -> Array:
    """Return the code of all outputs (``kernel.h``)."""
    found, code, begin = _entries(layer), [], 0
    for count in found.counts.tolist():
        filled, end = (0, count % 2), begin + count
        gaps = np.pad(found.gaps[begin:end], filled)
        weights = np.pad(found.weights[begin:end].view(np.uint8), filled)
        code.append(np.array(divmod(len(gaps) // 2, 256)[::-1], np.uint8))
        pairs = [gaps[::2] | gaps[1::2] << 4, weights[::2], weights[1::2]]
        if layer.narrow:
            pairs[1:] = [pairs[1] & 15 | pairs[2] << 4]
        code.append(np.stack(pairs, axis=1).ravel())
        begin = end
    return np.concatenate(code)


def calls_of(name: str, layer: RoundedConvolution) -> list[KernelCall]:
    """Return the call for ``layer``."""
    dtype = layer.spec.dtype
    fields = {"channels": layer.inputs, "out_channels": layer.spec.channels, "to": target(layer)}
    pixels = integer(layer.spec.output_shape[1] * layer.spec.output_shape[2])
    if layer.by_rows:
        pixels = f"{integer(layer.spec.output_shape[2])} * (int32_t)*n"
    lines = [
        f"{STATIC} sparse_{dtype} c = {initialiser(fields)};",
        f"const sparse_with_{dtype} with = {{w, b, m, r}};",
        f"sparse_windows_{layer.name}(&c, &with, x0, (uint8_t *)out, {pixels});",
    ]
    takes = [("w", "uint8"), ("b", "int32"), ("m", "int32"), ("r", "int8")]
    shape = Shape(["x0"], takes, layer.by_rows)
    kernel = written(name, layer, "sparse_any/kernel.h", shape, lines)
    return [KernelCall(kernel, (pack(layer), *numbers(layer)))]


def counts(layer: RoundedConvolution, _options: KernelOptions) -> list[float]:
    """Return the counts of calls, and of tiles of four windows and of one with their work."""
    lines, pixels = lines_of(layer)
    tiles = divmod(lines * pixels, WINDOWS)
    outputs, pairs = layer.spec.channels, int((-(-_entries(layer).counts // 2)).sum())
    return [
        1,
        *tiles,
        *(n * outputs for n in tiles),
        *(n * pairs for n in tiles),
        clamped(layer),
    ]


KERNEL = LibraryKernel(
    name="sparse_any",
    computes=CONVOLUTION,
    isa=ANY,
    refuses=refuses,
    calls=calls_of,
    passages=lambda layer, _options: in_order(layer, WINDOWS),
    cases=NARROW_TYPES,
    case=case_of_type,
    counts=counts,
    driven=True,
)
