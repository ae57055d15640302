"""Weights of dense layers and 1x1 convolutions without their zeros (``common/sparse.h``)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tvm_serenity.firmware.kernels.parts.layer import RoundedConvolution
from tvm_serenity.firmware.kernels.parts.packing import by_sources
from tvm_serenity.firmware.program import Array

MOST_GAP, MOST_PAIRS = 15, (1 << 16) - 1
"""The limits of a gap, in 4 bits, and of the pairs of an output, in two bytes."""
HEAD_BYTES = 2
DENSE = "supports only weights that take fewer bytes without their zeros"


def supported(layer: RoundedConvolution) -> str:
    """Return why no sparse kernel computes ``layer`` whatever its weights, "" if one may."""
    if not layer.plain or layer.sources != 1 or layer.spec.groups != 1:
        return "supports only dense layers and 1x1 convolutions of one tensor, of stride 1"
    return ""


def refusal(layer: RoundedConvolution) -> str:
    """Return why no kernel with this code computes ``layer``, "" if one may."""
    if reason := supported(layer):
        return reason
    outputs = layer.spec.channels
    dense = layer.inputs * outputs // (2 if layer.narrow else 1)
    if 2 * dense <= _pair_bytes(layer) * np.count_nonzero(layer.weights):
        return DENSE
    pairs = pairs_of(layer)
    if _pair_bytes(layer) * int(pairs.sum()) + HEAD_BYTES * outputs >= dense:
        return DENSE
    return "" if int(pairs.max()) <= MOST_PAIRS else f"supports only {MOST_PAIRS} pairs of weights"


def pairs_of(layer: RoundedConvolution) -> NDArray[np.int64]:
    """Return the number of pairs of weights of each output."""
    return -(-_entries(layer).counts // 2)


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
    """Return the code of all outputs."""
    found, code, begin = _entries(layer), [], 0
    for count in found.counts.tolist():
        filled, end = (0, count % 2), begin + count
        gaps = np.pad(found.gaps[begin:end], filled)
        weights = np.pad(found.weights[begin:end].view(np.uint8), filled)
        code.append(np.array(divmod(len(gaps) // 2, 256)[::-1], np.uint8))
        both = gaps[::2] | gaps[1::2] << 4
        pairs = [weights[::2], both, weights[1::2]]
        if layer.narrow:
            pairs = [both, weights[::2] & 15 | weights[1::2] << 4]
        code.append(np.stack(pairs, axis=1).ravel())
        begin = end
    return np.concatenate(code)
