"""Channels of a quantised network that need not be computed: constant ones, and those not read.

    found = superfluous(net)
    found.gone[tensor]          # which channels of a tensor can be left out

1. *Forward*, an interval of every channel: between which numbers its elements lie, whatever the
   input of the network is. Graph inputs have all numbers of their type. A sum of products lies
   between the sums of the products' ends; where a window may reach into the border, an input is
   also the number that the border reads. How sums become stored numbers never falls, so that the
   ends of a sum's interval give those of the stored one.
2. *Backward*, the greatest set of channels that no result depends on. A channel may go if every
   layer that reads its tensor can do without it:

   * what sums over channels (a convolution, a dense layer) can do without a channel that is
     constant: the constant times its weights is added to the bias, the weights go. With a border,
     only a constant that the border reads, too: else sums at the edges of an image would differ
     from the others. It can also do without a channel whose weights are 0 in every output that
     stays;
   * what keeps channels apart (a depthwise convolution, a pool, a table, a sum of two tensors, a
     concat) can do without a channel if all that it makes of it goes as well; and what it makes of
     several channels goes only if all of these go;
   * nothing else can do without any.

Proof that what stays is the same: take the first tensor in the order of the network whose staying
channels differ. A layer that keeps channels apart reads only channels that stay. One that sums over
channels reads the same numbers where they stay; what goes was constant, and its products are in the
bias, or was multiplied by 0. Sums are exact: where one could leave its integer type, on any input,
the layer's inputs all stay.

Kernels work on channels by fours: a tensor whose channels are a multiple of four, or of two, keeps
such a number of them, and never none.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
STEP = 4
"""Channels that kernels make or read at once."""


@dataclass(frozen=True, eq=False)
class Interval:
    """The least and the greatest number of each channel of a tensor."""

    low: Ints
    high: Ints

    @property
    def constant(self) -> Flags:
        """Which channels have one number only."""
        return np.asarray(self.low == self.high)

    def within(self, low: int, high: int) -> "Interval":
        """Return it after clamping."""
        return Interval(np.clip(self.low, low, high), np.clip(self.high, low, high))


@dataclass(frozen=True, eq=False, kw_only=True)
class Mixing:
    """A layer whose every output sums over the channels of ``sources``, joined in order.

    ``weights``: (taps, inputs, outputs). ``fill``: what is read outside of the image, None where
    windows never leave it. ``finish``: from sums (..., outputs) to stored numbers; it never falls.
    ``most``: the greatest sum that its integer type holds.
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
        """Channels of all sources."""
        return int(self.weights.shape[1])


@dataclass(frozen=True, eq=False, kw_only=True)
class Apart:
    """A layer that makes each channel of its result of one channel a source at most.

    ``read``: for each source, which of its channels every channel of the result is made of; -1 for
    none. ``bounds``: from the intervals of what is read, a channel of the result each.
    """

    sources: tuple[int, ...]
    result: int
    read: tuple[Ints, ...]
    bounds: Callable[[Sequence[Interval]], Interval]


@dataclass(frozen=True, eq=False, kw_only=True)
class ChannelNet:
    """Layers in an order they can run in; ``ranges``: of each tensor all that may be stored.

    ``whole``: the tensors of which every channel stays.
    """

    ranges: tuple[Interval, ...]
    layers: tuple[Mixing | Apart, ...]
    whole: frozenset[int]


@dataclass(frozen=True, eq=False)
class Superfluous:
    """Of every tensor the interval of each channel, and which channels can be left out."""

    intervals: tuple[Interval, ...]
    gone: tuple[Flags, ...]

    @property
    def count(self) -> int:
        """How many channels can be left out."""
        return int(sum(flags.sum() for flags in self.gone))


def superfluous(net: ChannelNet) -> Superfluous:
    """Return the channels of ``net`` that need not be computed."""
    intervals = list(net.ranges)
    exact = {}
    for layer in net.layers:
        if isinstance(layer, Apart):
            intervals[layer.result] = layer.bounds(_read(layer, intervals))
        else:
            intervals[layer.result], exact[layer.result] = _sums(layer, intervals)
    gone = [np.full(r.low.shape, t not in net.whole) for t, r in enumerate(net.ranges)]
    while _narrowed(net, intervals, exact, gone) or _rounded_up(gone):
        pass
    return Superfluous(tuple(intervals), tuple(gone))


def _read(layer: Apart, intervals: Sequence[Interval]) -> list[Interval]:
    found = (intervals[source] for source in layer.sources)
    return [Interval(i.low[at], i.high[at]) for i, at in zip(found, layer.read, strict=True)]


def read_from(read: Sequence[Ints], found: Sequence[Interval]) -> Interval:
    """Return the interval of the one channel that each channel of a result is made of.

    ``read`` as :class:`Apart` has it; ``found``: of every source what is read.
    """
    made = [at >= 0 for at in read]
    return Interval(
        np.select(made, [i.low for i in found]), np.select(made, [i.high for i in found])
    )


def joined(layer: Mixing, intervals: Sequence[Interval]) -> Interval:
    """Return the intervals of the channels that a layer sums over."""
    found = [intervals[source] for source in layer.sources]
    return Interval(np.concatenate([i.low for i in found]), np.concatenate([i.high for i in found]))


def _sums(layer: Mixing, intervals: Sequence[Interval]) -> tuple[Interval, bool]:
    """The interval of a layer's results, and whether its sums never leave their type."""
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
        made = layer.finish(np.broadcast_to(ends, (2, layer.bias.size)))
        return Interval(made.min(axis=0), made.max(axis=0)), False
    return Interval(layer.finish(least + layer.bias), layer.finish(greatest + layer.bias)), True


def _narrowed(
    net: ChannelNet, intervals: Sequence[Interval], exact: dict[int, bool], gone: list[Flags]
) -> bool:
    """Take back what a layer cannot do without; whether there was anything."""
    before = sum(int(flags.sum()) for flags in gone)
    for layer in reversed(net.layers):
        if isinstance(layer, Apart):
            _narrow_apart(layer, gone)
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
    """Return which input channels are constants that the bias, of 32 bits, can hold."""
    inputs = joined(layer, intervals)
    found = inputs.constant
    if layer.fill is not None:
        found = found & (inputs.low == layer.fill)
    sums = np.abs(layer.weights[:, found]).sum(axis=0)
    reach = np.abs(inputs.low[found]) @ sums + np.abs(layer.bias)
    holds = int(reach.max(initial=0)) <= np.iinfo(np.int32).max
    return np.asarray(found & holds)


def _unread(layer: Mixing, gone: Flags) -> Flags:
    """Which input channels have no weight but 0 in the outputs that stay."""
    return np.asarray(~layer.weights[:, :, ~gone].any(axis=(0, 2)))


def _narrow_apart(layer: Apart, gone: list[Flags]) -> None:
    made = gone[layer.result]
    for source, read in zip(layer.sources, layer.read, strict=True):
        made &= np.where(read < 0, True, gone[source][read])
    for source, read in zip(layer.sources, layer.read, strict=True):
        kept = read[~made]
        gone[source][kept[kept >= 0]] = False


def _rounded_up(gone: list[Flags]) -> bool:
    """Keep the first channels of tensors that would keep an odd number; whether there were any."""
    found = False
    for flags in gone:
        step, kept = math.gcd(flags.size, STEP), int((~flags).sum())
        missing = -kept % step if kept else step
        flags[np.flatnonzero(flags)[:missing]] = False
        found = found or missing > 0
    return found
