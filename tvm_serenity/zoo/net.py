"""Builds networks as a Relax function: one binding per operator, with seeded weights.

Definitions of networks use only ``NetBuilder``, so that they are similar to the papers and do not
import TVM. Only this module imports TVM, and only ``zoo.build`` imports this module.

The weights stand for a trained network whose batch normalisations are folded into the convolutions,
so that every channel has about unit variance for any input. For this, the module tracks the mean
square of every feature map (``NetTensor.moment``) and scales each weight by it (He et al., 2015,
section 2.2, with the actual mean squares of sums and concats). So activations do not overflow or
vanish, however deep the network is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from tvm import IRModule, relax

from tvm_serenity.errors import InputError
from tvm_serenity.zoo.weights import WeightStream
from tvm_serenity.zoo.window import POINT, Window

_BIAS = 0.1  # Biases are uniform in [-_BIAS, _BIAS).


@dataclass(frozen=True)
class NetTensor:
    """A tensor of the network with a batch of 1: its Relax variable and its extents.

    A vector has height and width 1. ``moment``: the expected mean square of the elements.
    """

    var: relax.Expr
    channels: int
    height: int
    width: int
    moment: float = 1.0


class NetBuilder:
    """Appends operators to a dataflow block; each method returns its result as a ``NetTensor``.

    ``layout``: "NCHW" or "NHWC"; a seed gives the same weights for both.
    """

    def __init__(self, builder: relax.BlockBuilder, layout: str, seed: int) -> None:
        self.seed = seed
        self.params: list[Any] = []
        self._builder = builder
        self._layout = layout
        self._kernel_layout = "OIHW" if layout == "NCHW" else "HWIO"
        self._channel_axis = layout.index("C")
        self._spatial_axes = [layout.index("H"), layout.index("W")]
        self._weights = WeightStream(seed)
        self._prefix = ""

    def input(self, name: str, channels: int, size: int) -> NetTensor:
        """Return a parameter of ``main``: ``channels`` channels of ``size`` x ``size`` pixels."""
        extent = {"N": 1, "C": channels, "H": size, "W": size}
        var = relax.Var(name, relax.TensorType([extent[a] for a in self._layout], "float32"))
        self.params.append(var)
        return NetTensor(var, channels, size, size)

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Prefix the names of the variables bound inside with ``name`` and an underscore."""
        outer, self._prefix = self._prefix, f"{self._prefix}{name}_"
        yield
        self._prefix = outer

    # Layers with weights, whose results have a mean square of 1.

    def conv(
        self,
        x: NetTensor,
        channels: int,
        window: Window = POINT,
        groups: int = 1,
        bias: bool = True,
    ) -> NetTensor:
        """Return a convolution; a separate binding adds its bias."""
        name = "conv" if groups == 1 else "dwconv"
        fan_in = x.channels // groups * math.prod(window.kernel)
        weight = self._weights.uniform(
            (channels, x.channels // groups, *window.kernel), half_range(fan_in, x.moment)
        )
        call = relax.op.nn.conv2d(
            x.var,
            self._constant(
                weight.transpose(["OIHW".index(a) for a in self._kernel_layout]),
                self._kernel_layout.index("O"),
            ),
            strides=window.stride,
            padding=window.padding,
            dilation=window.dilation,
            groups=groups,
            data_layout=self._layout,
            kernel_layout=self._kernel_layout,
        )
        y = self._emit(call, name, 1.0)
        return self._add_bias(y, name) if bias else y

    def depthwise(self, x: NetTensor, window: Window, bias: bool = True) -> NetTensor:
        """Return a depthwise convolution with a channel multiplier of 1."""
        return self.conv(x, x.channels, window, x.channels, bias)

    def dense(self, x: NetTensor, units: int) -> NetTensor:
        """Return a fully connected layer on a vector."""
        weight = self._weights.uniform((x.channels, units), half_range(x.channels, x.moment))
        return self._add_bias(
            self._emit(relax.op.matmul(x.var, self._constant(weight, 1)), "dense", 1.0), "dense"
        )

    def _add_bias(self, x: NetTensor, name: str) -> NetTensor:
        bias = self._weights.uniform((x.channels,), _BIAS)
        if len(x.var.ty.shape) == 4 and self._layout == "NCHW":
            bias = bias.reshape(x.channels, 1, 1)
        return self._emit(relax.op.add(x.var, self._bias_constant(bias)), f"{name}_bias", 1.0)

    def _constant(self, weight: np.ndarray[Any, Any], axis: int) -> Any:
        """Return ``weight`` as a constant; its output channels are along ``axis``."""
        return relax.const(weight)

    def _bias_constant(self, bias: np.ndarray[Any, Any]) -> Any:
        """Return ``bias`` as a constant for the layer whose weights were created last."""
        return relax.const(bias)

    # Operators without weights.

    def relu(self, x: NetTensor) -> NetTensor:
        """Return max(x, 0)."""
        return self._emit(relax.op.nn.relu(x.var), "relu", x.moment / 2)

    def relu6(self, x: NetTensor) -> NetTensor:
        """Return min(max(x, 0), 6)."""
        return self._emit(relax.op.clip(x.var, 0, 6), "relu6", x.moment / 2)

    def add(self, x: NetTensor, y: NetTensor) -> NetTensor:
        """Return the sum of two features of equal shape."""
        return self._emit(relax.op.add(x.var, y.var), "add", x.moment + y.moment)

    def scale(self, x: NetTensor, factor: float) -> NetTensor:
        """Return ``x`` times a constant."""
        call = relax.op.multiply(x.var, relax.const(factor, "float32"))
        return self._emit(call, "scale", x.moment * factor * factor)

    def weighted_sum(self, xs: Sequence[NetTensor]) -> NetTensor:
        """Return the weighted sum of features; weights are sigmoids of values in [-1, 1)."""
        logits = self._weights.uniform((len(xs),), 1.0)
        terms = [
            self.scale(x, 1 / (1 + math.exp(-float(logit))))
            for x, logit in zip(xs, logits, strict=True)
        ]
        return reduce(self.add, terms)

    def average(self, xs: Sequence[NetTensor]) -> NetTensor:
        """Return the mean of features of equal shape."""
        return xs[0] if len(xs) == 1 else self.scale(reduce(self.add, xs), 1 / len(xs))

    def concat(self, xs: Sequence[NetTensor]) -> NetTensor:
        """Return the features concatenated along the channels."""
        moment = sum(x.channels * x.moment for x in xs) / sum(x.channels for x in xs)
        call = relax.op.concat([x.var for x in xs], axis=self._channel_axis)
        return self._emit(call, "concat", moment)

    def max_pool(self, x: NetTensor, window: Window) -> NetTensor:
        """Return the max pooling of ``x``; padding is ignored."""
        # The maximum of several values has about twice their mean square.
        return self._pool(relax.op.nn.max_pool2d, x, window, 2 * x.moment)

    def avg_pool(self, x: NetTensor, window: Window) -> NetTensor:
        """Return the average pooling of ``x``; padding does not count."""
        return self._pool(relax.op.nn.avg_pool2d, x, window, x.moment)

    def _pool(
        self, op: Callable[..., relax.Expr], x: NetTensor, window: Window, moment: float
    ) -> NetTensor:
        call = op(x.var, window.kernel, window.stride, window.padding, layout=self._layout)
        return self._emit(call, "pool", moment)

    def mean(self, x: NetTensor) -> NetTensor:
        """Return the global average pooling of ``x``: a vector of the channels' means."""
        return self._emit(relax.op.mean(x.var, self._spatial_axes), "mean", x.moment)

    def flatten(self, x: NetTensor) -> NetTensor:
        """Return a 1 x 1 feature as a vector."""
        return self._emit(relax.op.reshape(x.var, (1, x.channels)), "flatten", x.moment)

    def shift(self, x: NetTensor) -> NetTensor:
        """Return ``x`` without its first row and first column."""
        call = relax.op.strided_slice(
            x.var, self._spatial_axes, begin=[1, 1], end=[x.height, x.width]
        )
        return self._emit(call, "shift", x.moment)

    def split(self, x: NetTensor) -> NetTensor:
        """Return the only part of a split of ``x`` into one part, which is a copy."""
        return self._emit(relax.op.split(x.var, 1, axis=self._channel_axis), "split", x.moment)

    def softmax(self, x: NetTensor) -> NetTensor:
        """Return the softmax of a vector."""
        return self._emit(relax.op.nn.softmax(x.var), "softmax", 1.0)

    def _emit(self, call: relax.Expr, name: str, moment: float) -> NetTensor:
        var = self._builder.emit(call, self._prefix + name)
        return self._feature(var, [int(d) for d in var.ty.shape], moment)

    def _feature(self, var: relax.Var, dims: Sequence[int], moment: float) -> NetTensor:
        height, width = (dims[a] for a in self._spatial_axes) if len(dims) == 4 else (1, 1)
        channels = dims[self._channel_axis] if len(dims) == 4 else dims[1]
        return NetTensor(var, channels, height, width, moment)


def half_range(fan_in: int, moment: float) -> float:
    """Return r such that fan_in * moment * r^2 / 3 is 1, for weights uniform in [-r, r)."""
    return math.sqrt(3 / (fan_in * moment))


def module(
    write: Callable[[NetBuilder], NetTensor],
    layout: str,
    seed: int,
    kind: type[NetBuilder] = NetBuilder,
) -> IRModule:
    """Return the module whose ``main`` returns the result of ``write``, as one dataflow block."""
    builder = relax.BlockBuilder()
    try:
        with builder.function("main"):
            with builder.dataflow():
                net = kind(builder, layout, seed)
                output = builder.emit_output(write(net).var, "output")
            builder.emit_func_output(output, net.params)
    except InputError:
        builder._end_block()  # A builder with an open block would print an error.
        raise
    # emit_output binds an alias, which this pass removes so that every binding is an operator.
    return relax.transform.CanonicalizeBindings()(builder.get())
