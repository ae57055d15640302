"""Builds networks in int8 from the same definitions, in the form of an imported quantized file.

Each value that a kernel stores is quantized and dequantized. Weights are int8 with a scale per
channel; biases are int32, with the product of the scales of input and weights.
``SerenityQuantize`` converts the network to integer kernels. Scales are computed from the mean
squares that ``NetBuilder`` tracks, without calibration data.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from tvm import relax

from tvm_serenity.zoo.net import NetBuilder, NetTensor
from tvm_serenity.zoo.window import POINT, Window

SPREAD = 4.0
"""The int8 range of a linear value ends at this multiple of its root mean square."""
SIX = 6.0


class QuantisedNet(NetBuilder):
    """A ``NetBuilder`` whose input, stored values and output are int8."""

    def __init__(self, builder: relax.BlockBuilder, layout: str, seed: int) -> None:
        super().__init__(builder, layout, seed)
        self._kept: dict[Any, tuple[NetTensor, float]] = {}
        self._limits: dict[Any, tuple[float, int]] = {}  # Required scale and zero point by value.
        self._source_scale = 1.0
        self._weight_scales: Any = None

    def input(self, name: str, channels: int, size: int) -> NetTensor:
        """Return an int8 parameter, dequantized."""
        known = super().input(name, channels, size)
        var = relax.Var(name, relax.TensorType(known.var.ty.shape, "int8"))
        self.params[-1] = var
        scale = SPREAD / 127
        real = self._emit(_dequantised(var, scale, 0), name, known.moment)
        self._kept[real.var] = (real, scale)
        self._limits[real.var] = (scale, 0)
        return real

    def stored(self, x: NetTensor) -> NetTensor:
        """Return the int8 values of ``x``, for an output of the network."""
        real = self._stored(x)
        scale, zero = self._limits[real.var]
        return self._emit(_quantised(real.var, scale, zero), "output", x.moment)

    def conv(
        self,
        x: NetTensor,
        channels: int,
        window: Window = POINT,
        groups: int = 1,
        bias: bool = True,
    ) -> NetTensor:
        """Return a convolution of the quantized ``x``."""
        return super().conv(self._stored(x), channels, window, groups, bias)

    def dense(self, x: NetTensor, units: int) -> NetTensor:
        """Return a dense layer of the quantized ``x``."""
        return super().dense(self._stored(x), units)

    def relu6(self, x: NetTensor) -> NetTensor:
        """Return min(max(x, 0), 6), quantized so that int8 covers the range 0 to 6."""
        y = super().relu6(x)
        self._limits[y.var] = (SIX / 255, -128)
        return y

    def add(self, x: NetTensor, y: NetTensor) -> NetTensor:
        """Return the sum of the quantized ``x`` and ``y``."""
        return super().add(self._stored(x), self._stored(y))

    def mean(self, x: NetTensor) -> NetTensor:
        """Return the channels' means of the quantized ``x``, with the same scale."""
        return self._like(x, super().mean(self._stored(x)))

    def max_pool(self, x: NetTensor, window: Window) -> NetTensor:
        """Return the max pooling of the quantized ``x``, with the same scale."""
        return self._like(x, super().max_pool(self._stored(x), window))

    def avg_pool(self, x: NetTensor, window: Window) -> NetTensor:
        """Return the average pooling of the quantized ``x``, with the same scale."""
        return self._like(x, super().avg_pool(self._stored(x), window))

    def concat(self, xs: Sequence[NetTensor]) -> NetTensor:
        """Return the quantized ``xs`` concatenated along the channels, with a new common scale."""
        return super().concat([self._stored(x) for x in xs])

    def softmax(self, x: NetTensor) -> NetTensor:
        """Return the softmax in int8, with a scale of 1/256 and a zero point of -128."""
        y = super().softmax(self._stored(x))
        return self._emit(_quantised(y.var, 1 / 256, -128), "output", y.moment)

    def _stored(self, x: NetTensor) -> NetTensor:
        """Return ``x`` quantized and dequantized; the first call for ``x`` adds these operators."""
        if x.var not in self._kept:
            scale, zero = self._limits.setdefault(x.var, (_linear_scale(x), 0))
            stored = self._emit(_quantised(x.var, scale, zero), "stored", x.moment)
            real = self._emit(_dequantised(stored.var, scale, zero), "real", x.moment)
            self._kept[x.var] = self._kept[real.var] = (real, scale)
            self._limits[real.var] = (scale, zero)
        real, self._source_scale = self._kept[x.var]
        return real

    def _like(self, x: NetTensor, y: NetTensor) -> NetTensor:
        """Return ``y``, to be quantized with the scale and zero point of ``x``."""
        self._limits[y.var] = self._limits[x.var]
        return y

    def _constant(self, weight: np.ndarray[Any, Any], axis: int) -> Any:
        others = tuple(i for i in range(weight.ndim) if i != axis)
        scales = np.maximum(np.abs(weight).max(others) / 127, 1e-8).astype(np.float32)
        shape = [-1 if i == axis else 1 for i in range(weight.ndim)]
        stored = np.rint(weight / scales.reshape(shape)).astype(np.int8)
        self._weight_scales = scales
        return _dequantised(relax.const(stored), scales, np.zeros(scales.shape, np.int8), axis)

    def _bias_constant(self, bias: np.ndarray[Any, Any]) -> Any:
        scales = (self._weight_scales * np.float32(self._source_scale)).astype(np.float32)
        stored = np.rint(bias.reshape(-1) / scales).astype(np.int32)
        axis = int(np.argmax(bias.shape))
        zeros = np.zeros(scales.shape, np.int32)
        return _dequantised(relax.const(stored.reshape(bias.shape)), scales, zeros, axis)


def _linear_scale(x: NetTensor) -> float:
    return SPREAD * math.sqrt(x.moment) / 127


def _dequantised(value: relax.Expr, scale: ArrayLike, zero: ArrayLike, axis: int = -1) -> Any:
    return relax.op.dequantize(value, *_parameters(scale, zero), axis=axis)


def _quantised(value: relax.Expr, scale: float, zero: int) -> Any:
    return relax.op.quantize(value, *_parameters(scale, zero), axis=-1, out_dtype="int8")


def _parameters(scale: ArrayLike, zero: ArrayLike) -> tuple[Any, Any]:
    zeros = np.asarray(zero, None if np.ndim(zero) else np.int8)
    scales = np.asarray(scale, None if np.ndim(scale) else np.float32)
    return relax.const(scales), relax.const(zeros)
