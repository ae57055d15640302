"""Weights and numbers of a layer in the order that kernels of the library read them."""

from typing import Any

import numpy as np

from tvm_serenity.firmware.kernels.pack import BLOCK, in_groups
from tvm_serenity.firmware.kernels.parts.layer import RoundedConvolution
from tvm_serenity.firmware.kernels.record import KernelCall, KernelOptions
from tvm_serenity.firmware.program import Array, Kernel

OUTPUTS = 4
"""Outputs that are requantised as one vector."""


def with_room(layer: RoundedConvolution, weights: Array) -> Array:
    """Return the weights; behind them what vectors may read past the last ones."""
    if not layer.vectors or layer.apart or not layer.narrow:
        return weights
    block = weights.nbytes // (-(-layer.spec.channels // 2) * layer.depth // BLOCK)
    return np.pad(weights.ravel(), (0, 3 * block))


def numbers(layer: RoundedConvolution) -> list[Array]:
    """Return bias, multipliers and shifts of the outputs; vectors read four outputs at a time."""
    each = [layer.bias, layer.rounding.multipliers, layer.rounding.shifts]
    more = -layer.spec.channels % OUTPUTS if layer.vectors and not layer.apart else 0
    return [np.pad(a, (0, more)) if a.size > 1 else a for a in each]


def by_sources(layer: RoundedConvolution) -> Any:
    """Return weights ``[inputs, outputs]`` as windows are read: by piece, row, column."""
    spec = layer.spec
    weights = layer.weights.reshape(*spec.weight_shape[:2], -1, spec.channels)
    ends = np.cumsum([shape[3] for shape in spec.pieces])[:-1]
    parts = np.split(weights, ends, axis=2)
    return np.concatenate([part.reshape(-1, spec.channels) for part in parts])


def outside(layer: RoundedConvolution) -> list[Array]:
    """Return the pixels of zero points that stand outside of the image, where some are needed."""
    return [zeros(layer, layer.outside)] if layer.outside else []


def zeros(layer: RoundedConvolution, count: int) -> Array:
    """Return so many zero points."""
    return np.full(count, layer.spec.input_zero, layer.spec.dtype)


def signed_groups(layer: RoundedConvolution) -> tuple[Array, Array]:
    """Return weights in groups of four outputs, and biases for inputs that are made signed."""
    weights = by_sources(layer)
    bias = layer.bias.astype(np.int64)
    if layer.spec.dtype == "uint8":
        bias = bias + 128 * weights.sum(axis=0, dtype=np.int64)
    return in_groups(weights, [weights.shape[0]], 0), bias.astype(np.int32)


def gathering(layer: RoundedConvolution, kernel: Kernel, weights: Array) -> KernelCall:
    """Return the call of a convolution that may gather two windows, with its packed weights."""
    constants = (weights, *numbers(layer), *outside(layer))
    workspace = 2 * layer.depth if layer.gathers and not layer.by_rows else 0
    return KernelCall(kernel, constants, workspace, KernelOptions(gathered=layer.gathers))
