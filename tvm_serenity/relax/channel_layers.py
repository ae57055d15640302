"""Layers of integer Relax functions for the removal of superfluous channels.

For each kind of call, a function returns the layer as ``rewrite.constant_channels`` sees it, and a
writer that emits the call for the remaining channels. Images have their channels last. A call that
is no :class:`ChannelLayer` keeps all its channels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.kernels import convolution, pointwise, pooling
from tvm_serenity.kernels.records import (
    AveragePool,
    Convolution,
    Dense,
    Lookup,
    Mean,
    Pair,
    Product,
    Requantise,
    Sum,
)
from tvm_serenity.operators.weighted import requantised
from tvm_serenity.quantize.fixed import Multiplier, scaled
from tvm_serenity.relax.calls import Writer, shape_of
from tvm_serenity.rewrite.constant_channels import Interval, Ints, Mixing, PerChannel, read_from

Arrays = Sequence[Any]
"""The array of each argument of a call, None for variables."""
LAST = "NHWC"


@dataclass(frozen=True, eq=False)
class Stay:
    """The remaining channels of each source and of the result.

    ``bias`` includes removed constants.
    """

    sources: tuple[Ints, ...]
    result: Ints
    bias: Ints | None = None


@dataclass(frozen=True, eq=False)
class ChannelLayer:
    """A layer and its writer, from new sources and remaining channels to the new result."""

    layer: Mixing | PerChannel
    write: Callable[[Writer, Sequence[Any], Stay], Any]


@dataclass(frozen=True, eq=False)
class LayerCall:
    """A call with tensors by number; ``sources``: its arguments that are not constants."""

    call: relax.Call
    name: str
    spec: Any
    arrays: Arrays
    sources: tuple[int, ...]
    result: int

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the sources."""
        arguments = compat.kernel_arguments(self.call)
        return [shape_of(a) for a, held in zip(arguments, self.arrays, strict=True) if held is None]

    @property
    def constants(self) -> list[Any]:
        """The arrays among the arguments."""
        return [array for array in self.arrays if array is not None]

    def finish(self) -> Callable[[Ints], Ints]:
        """The requantisation of sums."""
        return partial(_stored, self.spec.requantise)


def known(seen: LayerCall) -> ChannelLayer | None:
    """Return the channel layer of a kernel call that was created from a spec."""
    read = _KERNELS.get(type(seen.spec))
    return None if read is None else read(seen)


def _stored(finish: Requantise, sums: Ints) -> Ints:
    return requantised(sums, finish).astype(np.int64)


def _most(dtype: str) -> int:
    """Return the largest sum of products of ``dtype`` and 8-bit weights, less a rounding margin."""
    return 1 << 46 if dtype == "int16" else int(np.iinfo(np.int32).max)


def _picked(finish: Requantise, channels: Ints) -> Requantise:
    """Return the requantisation of selected channels."""
    m = finish.multiplier
    if len(m.value) == 1:
        return finish
    parts = (tuple(np.asarray(a)[channels].tolist()) for a in (m.value, m.shift, m.real))
    return replace(finish, multiplier=Multiplier(*parts))


def _convolution(seen: LayerCall) -> ChannelLayer | None:
    spec: Convolution = seen.spec
    if spec.layout != LAST or (spec.groups != 1 and not spec.depthwise):
        return None
    weight, bias = seen.constants[:2]
    centred = weight.astype(np.int64) - spec.weight_zero
    fill = spec.input_zero if any(spec.padding) else None
    if spec.depthwise:
        return _depthwise(seen, centred.reshape(-1, spec.channels), fill)
    taps = centred.reshape(-1, *centred.shape[2:])
    return ChannelLayer(_mixing(seen, taps, fill), partial(_write_convolution, seen, weight, bias))


def _mixing(seen: LayerCall, taps: Ints, fill: int | None) -> Mixing:
    return Mixing(
        sources=seen.sources,
        result=seen.result,
        weights=taps,
        bias=seen.constants[1].astype(np.int64),
        fill=fill,
        finish=seen.finish(),
        most=_most(seen.spec.dtype),
    )


def _write_convolution(
    seen: LayerCall, weight: Any, bias: Any, writer: Writer, sources: Sequence[Any], stay: Stay
) -> Any:
    spec: Convolution = seen.spec
    held, first = [], 0
    for piece, channels in zip(spec.pieces, stay.sources, strict=True):
        held.append(channels + first)
        first += piece[3]
    kept = slice(None) if spec.depthwise else np.concatenate(held)
    weight = weight[..., stay.result] if spec.depthwise else weight[:, :, kept][..., stay.result]
    biases = bias if stay.bias is None else stay.bias
    made = replace(
        spec,
        pieces=tuple((*s[:3], len(c)) for s, c in zip(spec.pieces, stay.sources, strict=True)),
        weight_shape=weight.shape,
        groups=sum(len(c) for c in stay.sources) if spec.depthwise else 1,
        requantise=_picked(spec.requantise, stay.result),
    )
    constants = (np.ascontiguousarray(weight), biases[stay.result].astype(np.int32))
    kernel = convolution.convolution(made)
    return writer.kernel(seen.name, kernel, *sources, *constants, *made.requantise.arrays())


def _depthwise(seen: LayerCall, taps: Ints, fill: int | None) -> ChannelLayer | None:
    spec: Convolution = seen.spec
    every, first = spec.channels // sum(s[3] for s in spec.pieces), 0
    read = []
    for piece in spec.pieces:
        own = np.arange(spec.channels) // every - first
        read.append(np.where((own >= 0) & (own < piece[3]), own, -1))
        first += piece[3]
    mixing = _mixing(seen, taps, fill)

    def bounds(found: Sequence[Interval]) -> Interval:
        source = read_from(read, found)
        low, high = source.low, source.high
        if fill is not None:
            low, high = np.minimum(low, fill), np.maximum(high, fill)
        positive, negative = np.maximum(taps, 0).sum(axis=0), np.minimum(taps, 0).sum(axis=0)
        reach = np.maximum(np.abs(low), np.abs(high)) * (positive - negative) + np.abs(mixing.bias)
        least = low * positive + high * negative + mixing.bias
        greatest = high * positive + low * negative + mixing.bias
        exact = reach <= mixing.most
        least = np.where(exact, least, -mixing.most - 1)
        return Interval(mixing.finish(least), mixing.finish(np.where(exact, greatest, mixing.most)))

    weight, bias = seen.constants[:2]
    layer = PerChannel(sources=seen.sources, result=seen.result, read=tuple(read), bounds=bounds)
    return ChannelLayer(layer, partial(_write_convolution, seen, weight, bias))


def _dense(seen: LayerCall) -> ChannelLayer:
    spec: Dense = seen.spec
    weight = seen.constants[0]

    def write(writer: Writer, sources: Sequence[Any], stay: Stay) -> Any:
        assert stay.bias is not None
        kept = np.ascontiguousarray(weight[stay.sources[0]][:, stay.result])
        finish = _picked(spec.requantise, stay.result)
        made = replace(spec, inputs=kept.shape[0], units=kept.shape[1], requantise=finish)
        constants = (kept, stay.bias[stay.result].astype(np.int32), *finish.arrays())
        return writer.kernel(seen.name, convolution.dense(made), *sources, *constants)

    taps = (weight.astype(np.int64) - spec.weight_zero)[None]
    return ChannelLayer(_mixing(seen, taps, None), write)


def _channelwise(
    seen: LayerCall, bounds: Callable[[Sequence[Interval]], Interval], write: Callable[..., Any]
) -> ChannelLayer:
    """Return the layer of a call that processes each channel independently."""
    count = shape_of(seen.call)[-1]
    read = tuple(np.arange(count) for _ in seen.sources)
    return ChannelLayer(
        PerChannel(sources=seen.sources, result=seen.result, read=read, bounds=bounds), write
    )


def _fewer(shape: Sequence[int], channels: Ints) -> Any:
    return (*shape[:-1], len(channels))


def _average_pool(seen: LayerCall) -> ChannelLayer | None:
    spec: AveragePool = seen.spec
    if spec.layout != LAST:
        return None

    def bounds(found: Sequence[Interval]) -> Interval:
        (source,) = found
        if spec.requantise is None:
            return source.within(spec.low, spec.high)
        count, zero = spec.window[0] * spec.window[1], spec.zero_point
        low, high = source.low - zero, source.high - zero
        if any(spec.padding):
            low, high = np.minimum(low, 0), np.maximum(high, 0)
        return Interval(*(_stored(spec.requantise, end * count) for end in (low, high)))

    def write(writer: Writer, sources: Sequence[Any], stay: Stay) -> Any:
        shape, made = _fewer(spec.shape, stay.result), _fewer(spec.output_shape, stay.result)
        new = replace(spec, shape=shape, output_shape=made)
        return writer.kernel(seen.name, pooling.average_pool(new), *sources)

    return _channelwise(seen, bounds, write)


def _mean(seen: LayerCall) -> ChannelLayer | None:
    spec: Mean = seen.spec
    if len(spec.shape) - 1 in spec.axes:
        return None
    count = int(np.prod([spec.shape[axis] for axis in spec.axes]))

    def bounds(found: Sequence[Interval]) -> Interval:
        ends = ((end - spec.zero_point) * count for end in (found[0].low, found[0].high))
        return Interval(*(_stored(spec.requantise, end) for end in ends))

    def write(writer: Writer, sources: Sequence[Any], stay: Stay) -> Any:
        made = replace(spec, shape=_fewer(spec.shape, stay.result))
        return writer.kernel(seen.name, pooling.mean(made), *sources)

    return _channelwise(seen, bounds, write)


def _lookup(seen: LayerCall) -> ChannelLayer:
    spec, (table,) = seen.spec, seen.constants
    first = int(np.iinfo(spec.source).min)

    def bounds(found: Sequence[Interval]) -> Interval:
        pairs = zip(found[0].low - first, found[0].high - first + 1, strict=True)
        parts = [table[low:high].astype(np.int64) for low, high in pairs]
        return Interval(np.array([p.min() for p in parts]), np.array([p.max() for p in parts]))

    def write(writer: Writer, sources: Sequence[Any], stay: Stay) -> Any:
        kernel = pointwise.lookup(_fewer(spec.shape, stay.result), spec.source, spec.result)
        return writer.kernel(seen.name, kernel, *sources, table)

    return _channelwise(seen, bounds, write)


def _pair(seen: LayerCall) -> ChannelLayer | None:
    pair: Pair = seen.spec.pair
    channels = shape_of(seen.call)[-1]
    if len(seen.sources) != 2 or any(shape[-1] != channels for shape in pair.shapes):
        return None

    def bounds(found: Sequence[Interval]) -> Interval:
        if pair.rounding != "tflite" or _subtracts(seen.spec):
            return Interval(np.full(channels, pair.low), np.full(channels, pair.high))
        a, b = (
            (i.low - p.zero_point, i.high - p.zero_point)
            for i, p in zip(found, pair.sources, strict=True)
        )
        value = _sum if isinstance(seen.spec, Sum) else _product
        corners = np.array([value(seen.spec, x, y) for x in a for y in b]) + pair.result.zero_point
        return Interval(corners.min(axis=0), corners.max(axis=0)).within(pair.low, pair.high)

    def write(writer: Writer, sources: Sequence[Any], stay: Stay) -> Any:
        first, second = (_fewer(shape, stay.result) for shape in pair.shapes)
        made = replace(seen.spec, pair=replace(pair, shapes=(first, second)))
        build = pointwise.add if isinstance(seen.spec, Sum) else pointwise.multiply
        return writer.kernel(seen.name, build(made), *sources)

    return _channelwise(seen, bounds, write)


def _subtracts(spec: Sum | Product) -> bool:
    return isinstance(spec, Sum) and spec.right.real[0] < 0


def _sum(spec: Sum, a: Ints, b: Ints) -> Ints:
    first = scaled(a << spec.shift, spec.left.value[0], spec.left.shift[0])
    second = scaled(b << spec.shift, spec.right.value[0], spec.right.shift[0])
    return scaled(first + second, spec.out.value[0], spec.out.shift[0])


def _product(spec: Product, a: Ints, b: Ints) -> Ints:
    return scaled(a * b, spec.out.value[0], spec.out.shift[0])


_KERNELS: dict[type, Callable[[LayerCall], ChannelLayer | None]] = {
    AveragePool: _average_pool,
    Convolution: _convolution,
    Dense: _dense,
    Lookup: _lookup,
    Mean: _mean,
    Product: _pair,
    Sum: _pair,
}
