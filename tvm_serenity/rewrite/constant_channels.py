"""Finds channels of a quantized network that need not be computed: constant and unread ones.

    result = superfluous(net)
    result.gone[tensor]          # which channels of a tensor can be left out

1. *Forward*, an interval per channel: the range of its elements for any input of the network. Graph
   inputs have the full range of their type. A sum of products lies between the sums of the
   products' bounds; if a window reaches into the padding, an input may also be the padding value.
   The function from sums to stored numbers never decreases, so the bounds of a sum give those of
   the stored number.
2. *Backward*, the largest set of channels that no result depends on. A channel may be removed if
   every
   layer that reads its tensor can do without it:

   * a layer that sums over channels (convolution, dense) can do without a constant channel: the
     constant times its weights is added to the bias, and the weights are removed. With padding,
     this holds only if the constant equals the padding value: else sums at the edges of an image
     would differ from the others. It can also do without a channel whose weights are 0 in every
     remaining output;
   * a layer that works per channel (depthwise convolution, pool, table, sum of two tensors, concat)
     can do without a channel if all outputs computed from it are removed as well; an output
     computed from several channels is removed only if all of these are;
   * no other layer can do without any channel.

Proof that the remaining channels are unchanged: take the first tensor in network order whose
remaining channels differ. A per-channel layer reads only remaining channels. A layer that sums over
channels reads equal numbers in remaining channels; a removed channel was constant, and its products
are in the bias, or was multiplied by 0. Sums are exact: if a sum could overflow its integer type on
any input, all inputs of the layer remain.

Kernels process channels in groups of four: a tensor whose channels are a multiple of four, or of
two, keeps such a number of them, and at least one group.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
STEP = 4
"""Channels that kernels process at once."""


@dataclass(frozen=True, eq=False)
class Interval:
    """The smallest and the largest number of each channel of a tensor."""

    low: Ints
    high: Ints

    @property
    def constant(self) -> Flags:
        """Whether each channel has one number only."""
        return np.asarray(self.low == self.high)

    def within(self, low: int, high: int) -> "Interval":
        """Return the interval after clamping."""
        return Interval(np.clip(self.low, low, high), np.clip(self.high, low, high))


@dataclass(frozen=True, eq=False, kw_only=True)
class Mixing:
    """A layer whose every output sums over the channels of ``sources``, concatenated in order.

    ``weights``: (taps, inputs, outputs). ``fill``: the padding value, None if windows never leave
    the image. ``finish``: a non-decreasing function from sums (..., outputs) to stored numbers.
    ``most``: the largest sum of its integer type.
    """

    sources: tuple[int, ...]
    result: int
    weights: Ints
    bias: Ints
    fill: int | None
    finish: Callable[[Ints], Ints]
    most: int

    @property
    def inputs(self) -> int:
        """The total number of channels of all sources."""
        return int(self.weights.shape[1])


@dataclass(frozen=True, eq=False, kw_only=True)
class PerChannel:
    """A per-channel layer: each output channel reads at most one channel per source.

    ``read``: for each source, the channel that each output channel reads, -1 for none. ``bounds``:
    a function from the intervals of the read channels to those of the output channels.
    """

    sources: tuple[int, ...]
    result: int
    read: tuple[Ints, ...]
    bounds: Callable[[Sequence[Interval]], Interval]


@dataclass(frozen=True, eq=False, kw_only=True)
class ChannelNet:
    """Layers in topological order; ``ranges`` holds the full range of each tensor's type.

    ``whole``: the tensors of which every channel remains.
    """

    ranges: tuple[Interval, ...]
    layers: tuple[Mixing | PerChannel, ...]
    whole: frozenset[int]


@dataclass(frozen=True, eq=False)
class Superfluous:
    """For every tensor the interval of each channel, and the channels that can be left out."""

    intervals: tuple[Interval, ...]
    gone: tuple[Flags, ...]

    @property
    def count(self) -> int:
        """The number of channels that can be left out."""
        return int(sum(flags.sum() for flags in self.gone))


def superfluous(net: ChannelNet) -> Superfluous:
    """Return the channels of ``net`` that need not be computed."""
    intervals = list(net.ranges)
    exact = {}
    for layer in net.layers:
        if isinstance(layer, PerChannel):
            intervals[layer.result] = layer.bounds(_read(layer, intervals))
        else:
            intervals[layer.result], exact[layer.result] = _sums(layer, intervals)
    gone = [np.full(r.low.shape, t not in net.whole) for t, r in enumerate(net.ranges)]
    while _narrowed(net, intervals, exact, gone) or _rounded_up(gone):
        pass
    return Superfluous(tuple(intervals), tuple(gone))


def _read(layer: PerChannel, intervals: Sequence[Interval]) -> list[Interval]:
    read = (intervals[source] for source in layer.sources)
    return [Interval(i.low[at], i.high[at]) for i, at in zip(read, layer.read, strict=True)]


def read_from(read: Sequence[Ints], found: Sequence[Interval]) -> Interval:
    """Return the interval of the one channel that each output channel reads.

    ``read`` is that of :class:`PerChannel`; ``found`` holds the intervals read from each source.
    """
    reads = [at >= 0 for at in read]
    return Interval(
        np.select(reads, [i.low for i in found]), np.select(reads, [i.high for i in found])
    )


def joined(layer: Mixing, intervals: Sequence[Interval]) -> Interval:
    """Return the intervals of the channels that a layer sums over."""
    parts = [intervals[source] for source in layer.sources]
    return Interval(np.concatenate([i.low for i in parts]), np.concatenate([i.high for i in parts]))


def _sums(layer: Mixing, intervals: Sequence[Interval]) -> tuple[Interval, bool]:
    """Return the interval of a layer's results, and whether its sums never overflow."""
    inputs = joined(layer, intervals)
    low, high = inputs.low, inputs.high
    if layer.fill is not None:
        low, high = np.minimum(low, layer.fill), np.maximum(high, layer.fill)
    positive, negative = np.maximum(layer.weights, 0), np.minimum(layer.weights, 0)
    positive, negative = positive.sum(axis=0), negative.sum(axis=0)
    least, greatest = low @ positive + high @ negative, high @ positive + low @ negative
    reach = np.maximum(np.abs(low), np.abs(high)) @ (positive - negative) + np.abs(layer.bias)
    if int(reach.max(initial=0)) > layer.most:
        ends = np.array([-layer.most - 1, layer.most])[:, None]
        results = layer.finish(np.broadcast_to(ends, (2, layer.bias.size)))
        return Interval(results.min(axis=0), results.max(axis=0)), False
    return Interval(layer.finish(least + layer.bias), layer.finish(greatest + layer.bias)), True


def _narrowed(
    net: ChannelNet, intervals: Sequence[Interval], exact: dict[int, bool], gone: list[Flags]
) -> bool:
    """Restore channels that a layer cannot do without; return whether there were any."""
    before = sum(int(flags.sum()) for flags in gone)
    for layer in reversed(net.layers):
        if isinstance(layer, PerChannel):
            _narrow_per_channel(layer, gone)
            continue
        free = _unread(layer, gone[layer.result])
        free |= spared(layer, intervals)
        free &= exact[layer.result]
        first = 0
        for source in layer.sources:
            gone[source] &= free[first : first + gone[source].size]
            first += gone[source].size
    return sum(int(flags.sum()) for flags in gone) < before


def spared(layer: Mixing, intervals: Sequence[Interval]) -> Flags:
    """Return which input channels are constants whose products fit the bias of 32 bits."""
    inputs = joined(layer, intervals)
    constant = inputs.constant
    if layer.fill is not None:
        constant = constant & (inputs.low == layer.fill)
    sums = np.abs(layer.weights[:, constant]).sum(axis=0)
    reach = np.abs(inputs.low[constant]) @ sums + np.abs(layer.bias)
    holds = int(reach.max(initial=0)) <= np.iinfo(np.int32).max
    return np.asarray(constant & holds)


def _unread(layer: Mixing, gone: Flags) -> Flags:
    """Return which input channels have only zero weights in the remaining outputs."""
    return np.asarray(~layer.weights[:, :, ~gone].any(axis=(0, 2)))


def _narrow_per_channel(layer: PerChannel, gone: list[Flags]) -> None:
    removed = gone[layer.result]
    for source, read in zip(layer.sources, layer.read, strict=True):
        removed &= np.where(read < 0, True, gone[source][read])
    for source, read in zip(layer.sources, layer.read, strict=True):
        kept = read[~removed]
        gone[source][kept[kept >= 0]] = False


def _rounded_up(gone: list[Flags]) -> bool:
    """Restore channels of tensors that would keep an odd number; return whether there were any."""
    restored = False
    for flags in gone:
        step, kept = math.gcd(flags.size, STEP), int((~flags).sum())
        missing = -kept % step if kept else step
        flags[np.flatnonzero(flags)[:missing]] = False
        restored = restored or missing > 0
    return restored
