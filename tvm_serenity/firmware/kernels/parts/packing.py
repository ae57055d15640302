"""Weights, biases and requantisation of a layer in the layout that library kernels read."""

from typing import Any

import numpy as np

from tvm_serenity.firmware.kernels.pack import BLOCK, in_groups
from tvm_serenity.firmware.kernels.parts.layer import RoundedConvolution
from tvm_serenity.firmware.kernels.record import KernelCall, KernelOptions
from tvm_serenity.firmware.program import Array, Kernel

OUTPUTS = 4
"""Outputs that a vector requantises together."""


def with_room(layer: RoundedConvolution, weights: Array) -> Array:
    """Return the weights, padded by the bytes that vectors may read past the end."""
    if not layer.vectors or layer.depthwise or not layer.narrow:
        return weights
    block = weights.nbytes // (-(-layer.spec.channels // 2) * layer.depth // BLOCK)
    return np.pad(weights.ravel(), (0, 3 * block))


def numbers(layer: RoundedConvolution) -> list[Array]:
    """Return bias, multipliers and shifts of the outputs, padded to 4 outputs for vectors."""
    each = [layer.bias, layer.rounding.multipliers, layer.rounding.shifts]
    more = -layer.spec.channels % OUTPUTS if layer.vectors and not layer.depthwise else 0
    return [np.pad(a, (0, more)) if a.size > 1 else a for a in each]


def by_sources(layer: RoundedConvolution) -> Any:
    """Return weights ``[inputs, outputs]`` in the order of reading: by piece, row, column."""
    spec = layer.spec
    weights = layer.weights.reshape(*spec.weight_shape[:2], -1, spec.channels)
    ends = np.cumsum([shape[3] for shape in spec.pieces])[:-1]
    parts = np.split(weights, ends, axis=2)
    return np.concatenate([part.reshape(-1, spec.channels) for part in parts])


def outside(layer: RoundedConvolution) -> list[Array]:
    """Return the array of zero points for pixels outside of the image; empty if not needed."""
    return [zeros(layer, layer.outside)] if layer.outside else []


def zeros(layer: RoundedConvolution, count: int) -> Array:
    """Return an array of ``count`` input zero points."""
    return np.full(count, layer.spec.input_zero, layer.spec.dtype)


def signed_groups(layer: RoundedConvolution) -> tuple[Array, Array]:
    """Return weights in groups of four outputs, and biases for inputs converted to int8."""
    weights = by_sources(layer)
    bias = layer.bias.astype(np.int64)
    if layer.spec.dtype == "uint8":
        bias = bias + 128 * weights.sum(axis=0, dtype=np.int64)
    return in_groups(weights, [weights.shape[0]], 0), bias.astype(np.int32)


def gathering(layer: RoundedConvolution, kernel: Kernel, weights: Array) -> KernelCall:
    """Return the call of a convolution with packed weights; copied windows lie in workspace."""
    constants = (weights, *numbers(layer), *outside(layer))
    workspace = 2 * layer.depth if layer.gathers and not layer.by_rows else 0
    return KernelCall(kernel, constants, workspace, KernelOptions(gathered=layer.gathers))
