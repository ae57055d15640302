"""The networks of ``tvm_serenity.zoo`` as Relay modules, with the same definitions and weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tvm
from tvm import relay

from tvm_serenity.zoo import NAMES
from tvm_serenity.zoo.net import NetBuilder, NetTensor, half_range
from tvm_serenity.zoo.window import POINT, Window


def build(name: str, **params: Any) -> Any:
    """Return the typed Relay module of a zoo network; ``params``: the values of its parameters."""
    entry = NAMES[name]
    values = entry.values({key: str(value) for key, value in params.items()})
    net = RelayNet(values["layout"], values["seed"])
    body = entry.build(net, **{param.name: values[param.name] for param in entry.own}).var
    for var, call in reversed(net.bindings):
        body = relay.Let(var, call, body)
    mod = tvm.IRModule.from_expr(relay.Function(net.params, body))
    steps = [relay.transform.ToGraphNormalForm(), relay.transform.InferType()]
    return tvm.transform.Sequential(steps)(mod)


class RelayNet(NetBuilder):
    """``zoo.net.NetBuilder`` for Relay: it emits lets of known types."""

    def __init__(self, layout: str, seed: int) -> None:
        super().__init__(None, layout, seed)
        self.bindings: list[tuple[Any, Any]] = []

    def input(self, name: str, channels: int, size: int) -> NetTensor:
        """Return a parameter of ``main`` with ``channels`` maps of ``size`` x ``size``."""
        extent = {"N": 1, "C": channels, "H": size, "W": size}
        var = relay.var(name, shape=[extent[a] for a in self._layout])
        self.params.append(var)
        return NetTensor(var, channels, size, size)

    def conv(
        self,
        x: NetTensor,
        channels: int,
        window: Window = POINT,
        groups: int = 1,
        bias: bool = True,
    ) -> NetTensor:
        """Return a convolution; its bias is an operator of its own."""
        depth = x.channels // groups
        limit = half_range(depth * math.prod(window.kernel), x.moment)
        weight = self._weights.uniform((channels, depth, *window.kernel), limit)
        layout = self._kernel_layout if groups == 1 else self._kernel_layout.replace("IO", "OI")
        call = relay.nn.conv2d(
            x.var,
            _const(weight.transpose(["OIHW".index(a) for a in layout])),
            strides=window.stride,
            padding=window.padding,
            dilation=window.dilation,
            groups=groups,
            channels=channels,
            kernel_size=window.kernel,
            data_layout=self._layout,
            kernel_layout=layout,
        )
        y = self._emit(call, "conv", 1.0)
        return self._add_bias(y, "conv") if bias else y

    def dense(self, x: NetTensor, units: int) -> NetTensor:
        """Return a fully connected layer on a vector."""
        weight = self._weights.uniform((x.channels, units), half_range(x.channels, x.moment))
        call = relay.nn.dense(x.var, _const(weight.T))
        return self._add_bias(self._emit(call, "dense", 1.0), "dense")

    def _add_bias(self, x: NetTensor, name: str) -> NetTensor:
        bias = _const(self._weights.uniform((x.channels,), 0.1))
        axis = self._channel_axis if len(x.var.type_annotation.shape) == 4 else 1
        return self._emit(relay.nn.bias_add(x.var, bias, axis=axis), f"{name}_bias", 1.0)

    def relu(self, x: NetTensor) -> NetTensor:
        """Return max(x, 0)."""
        return self._emit(relay.nn.relu(x.var), "relu", x.moment / 2)

    def relu6(self, x: NetTensor) -> NetTensor:
        """Return min(max(x, 0), 6)."""
        return self._emit(relay.clip(x.var, 0, 6), "relu6", x.moment / 2)

    def add(self, x: NetTensor, y: NetTensor) -> NetTensor:
        """Return the sum of two features of one shape."""
        return self._emit(relay.add(x.var, y.var), "add", x.moment + y.moment)

    def scale(self, x: NetTensor, factor: float) -> NetTensor:
        """Return ``x`` times a constant."""
        call = relay.multiply(x.var, relay.const(factor, "float32"))
        return self._emit(call, "scale", x.moment * factor * factor)

    def concat(self, xs: Sequence[NetTensor]) -> NetTensor:
        """Return the concatenation of features along the channels."""
        moment = sum(x.channels * x.moment for x in xs) / sum(x.channels for x in xs)
        call = relay.concatenate([x.var for x in xs], axis=self._channel_axis)
        return self._emit(call, "concat", moment)

    def max_pool(self, x: NetTensor, window: Window) -> NetTensor:
        """Return max pooling; padding never wins."""
        return self._pool(relay.nn.max_pool2d, x, window, 2 * x.moment)

    def avg_pool(self, x: NetTensor, window: Window) -> NetTensor:
        """Return average pooling; padding is not counted."""
        return self._pool(relay.nn.avg_pool2d, x, window, x.moment)

    def _pool(
        self, op: Callable[..., relay.Expr], x: NetTensor, window: Window, moment: float
    ) -> NetTensor:
        padding = window.padding
        call = op(x.var, window.kernel, window.stride, padding=padding, layout=self._layout)
        return self._emit(call, "pool", moment)

    def mean(self, x: NetTensor) -> NetTensor:
        """Return global average pooling: the vector of channel means."""
        return self._emit(relay.mean(x.var, self._spatial_axes), "mean", x.moment)

    def flatten(self, x: NetTensor) -> NetTensor:
        """Return a 1 x 1 feature as a vector."""
        return self._emit(relay.reshape(x.var, (1, x.channels)), "flatten", x.moment)

    def shift(self, x: NetTensor) -> NetTensor:
        """Return ``x`` without its first row and first column."""
        axes = self._spatial_axes
        call = relay.strided_slice(x.var, [1, 1], [x.height, x.width], [1, 1], axes=axes)
        return self._emit(call, "shift", x.moment)

    def split(self, x: NetTensor) -> NetTensor:
        """Return a split into one part: a copy."""
        call = relay.split(x.var, 1, axis=self._channel_axis)[0]
        return self._emit(call, "split", x.moment)

    def softmax(self, x: NetTensor) -> NetTensor:
        """Return the softmax of a vector."""
        return self._emit(relay.nn.softmax(x.var), "softmax", 1.0)

    def _emit(self, call: relay.Call, name: str, moment: float) -> NetTensor:
        ty = relay.transform.InferTypeLocal(call)
        var = relay.Var(self._prefix + name, ty)
        self.bindings.append((var, call))
        return self._feature(var, [int(extent) for extent in ty.shape], moment)


def _const(array: np.ndarray[Any, Any]) -> Any:
    return relay.const(np.ascontiguousarray(array))
