"""Weights and numbers of a layer in the order the library's kernels read them."""

from typing import Any

import numpy as np

from tvm_serenity.firmware.pack import BLOCK, in_groups, paired, paired_nibbles
from tvm_serenity.firmware.program import Array
from tvm_serenity.firmware.tir.library import RoundedConvolution

TWINS = 8
"""So many channels of two pixels fill a vector of inputs."""
LANES = 4
"""Outputs that are requantised as one vector."""


def packed(layer: RoundedConvolution) -> Array:
    """Return the weights in the order the library reads them."""
    weights = by_sources(layer)
    if layer.grouped:
        runs = [weights.shape[0]] if layer.gathers else layer.stretches
        return in_groups(weights, runs, 128 if layer.spec.dtype == "uint8" else 0)
    return (paired_nibbles if layer.narrow else paired)(weights)


def in_nines(layer: RoundedConvolution) -> list[Array]:
    """Return weights ``[sixteens, 9, 16]``; words ``[sixteens, 36]``: biases, how to requantise."""
    channels = layer.spec.channels
    weights = layer.weights.reshape(9, channels)
    bias = layer.bias.astype(np.int64)
    if layer.spec.dtype == "uint8":
        bias = bias + 128 * weights.sum(axis=0, dtype=np.int64)
    given: tuple[Array, ...] = (bias, layer.how.multipliers, layer.how.shifts)
    each: list[Array] = [np.broadcast_to(a, (channels,)) for a in given]
    if channels == TWINS and layer.spec.strides[1] == 1:
        weights, each = np.tile(weights, 2), [np.tile(a, 2) for a in each]
    more = -weights.shape[1] % 16
    laid = np.pad(weights, ((0, 0), (0, more))).reshape(9, -1, 16).transpose(1, 0, 2)
    quads = [np.pad(a, (0, more)).reshape(-1, 4, 4)[..., (0, 2, 1, 3)] for a in each]
    turned = [a.transpose(0, 2, 1).reshape(-1, 16) for a in quads]
    shifts = np.ascontiguousarray(turned[2].astype(np.int8)).view(np.int32)
    words = [turned[0].astype(np.int32), turned[1].astype(np.int32), shifts]
    return [np.ascontiguousarray(laid), np.concatenate(words, axis=1)]


def with_room(layer: RoundedConvolution, weights: Array) -> Array:
    """Return the weights; behind them what vectors may read past the last ones."""
    if not layer.vectors or layer.apart or not layer.narrow:
        return weights
    block = weights.nbytes // (-(-layer.spec.channels // 2) * layer.depth // BLOCK)
    return np.pad(weights.ravel(), (0, 3 * block))


def numbers(layer: RoundedConvolution) -> list[Array]:
    """Return bias, multipliers and shifts of the outputs; vectors read four outputs at a time."""
    each = [layer.bias, layer.how.multipliers, layer.how.shifts]
    more = -layer.spec.channels % LANES if layer.vectors and not layer.apart else 0
    return [np.pad(a, (0, more)) if a.size > 1 else a for a in each]


def by_sources(layer: RoundedConvolution) -> Any:
    """Return weights ``[inputs, outputs]`` as windows are read: by piece, row, column."""
    spec = layer.spec
    weights = layer.weights.reshape(*spec.weight_shape[:2], -1, spec.channels)
    ends = np.cumsum([shape[3] for shape in spec.pieces])[:-1]
    parts = np.split(weights, ends, axis=2)
    return np.concatenate([part.reshape(-1, spec.channels) for part in parts])
