"""Superfluous channels of networks so small that every input can be tried."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest

from tvm_serenity.rewrite import constant_channels
from tvm_serenity.rewrite.constant_channels import (
    ChannelNet,
    Interval,
    Mixing,
    PerChannel,
    Superfluous,
    spared,
    superfluous,
)

LOW, HIGH = -2, 2
PIXELS = 3
"""Images are a line of pixels; windows of three taps have a border, those of one have none."""


def stored(sums: constant_channels.Ints) -> constant_channels.Ints:
    return np.asarray(np.clip((sums + 1) >> 1, LOW, HIGH))


def same(found: Sequence[Interval]) -> Interval:
    (only,) = found
    return only


def drawn(seed: int) -> ChannelNet:
    """Two convolutions or three, one of which keeps channels apart, of an input of one channel."""
    rng = np.random.default_rng(seed)
    channels = [1]
    layers: list[Mixing | PerChannel] = []
    for number in range(int(rng.integers(2, 5))):
        apart = number > 0 and rng.integers(0, 3) == 0
        count = channels[-1] if apart else int(rng.integers(1, 8))
        if apart:
            read = (np.arange(count),)
            layers.append(PerChannel(sources=(number,), result=number + 1, read=read, bounds=same))
        else:
            taps = int(rng.choice([1, 3]))
            weights = rng.integers(-2, 3, (taps, channels[-1], count))
            weights *= rng.random((1, channels[-1], 1)) > 0.2
            bias = rng.integers(-3, 4, count) + rng.choice([-90, 0, 0, 90], count)
            fill = None if taps == 1 else int(rng.integers(LOW, HIGH + 1))
            layers.append(
                Mixing(
                    sources=(number,),
                    result=number + 1,
                    weights=weights,
                    bias=bias,
                    fill=fill,
                    finish=stored,
                    most=1 << 20,
                )
            )
        channels.append(count)
    ranges = tuple(Interval(np.full(c, LOW), np.full(c, HIGH)) for c in channels)
    return ChannelNet(ranges=ranges, layers=tuple(layers), whole=frozenset({0, len(layers)}))


def run(net: ChannelNet, image: constant_channels.Ints) -> list[constant_channels.Ints]:
    """Every tensor (pixels, channels) for an input."""
    made = [image]
    for layer in net.layers:
        (source,) = layer.sources
        if isinstance(layer, PerChannel):
            made.append(made[source])
        else:
            made.append(stored(summed(layer, made[source], layer.bias)))
    return made


def summed(
    layer: Mixing, image: constant_channels.Ints, bias: constant_channels.Ints
) -> constant_channels.Ints:
    half = len(layer.weights) // 2
    fill = 0 if layer.fill is None else layer.fill
    wide = np.pad(image, ((half, half), (0, 0)), constant_values=fill)
    taps = (wide[i : i + len(image)] @ w for i, w in enumerate(layer.weights))
    return np.asarray(sum(taps) + bias)


def run_without(
    net: ChannelNet, found: Superfluous, image: constant_channels.Ints
) -> list[constant_channels.Ints]:
    """Every tensor; channels that are left out have a number that nothing may read."""
    poison, made = 10**6, [image]
    for layer in net.layers:
        (source,) = layer.sources
        gone, left = found.gone[source], found.gone[layer.result]
        if isinstance(layer, PerChannel):
            result = made[source].copy()
        else:
            folded = gone & spared(layer, found.intervals)
            more = found.intervals[source].low[folded] @ layer.weights[:, folded].sum(axis=0)
            weights = np.where(gone[None, :, None], 0, layer.weights)
            fewer = Mixing(**{**vars(layer), "weights": weights})
            result = stored(summed(fewer, made[source], layer.bias + more))
        result[:, left] = poison
        made.append(result)
    return made


def difference(seed: int) -> str:
    """Where a network computes something else without its superfluous channels; "" nowhere."""
    net = drawn(seed)
    found = superfluous(net)
    for values in product(range(LOW, HIGH + 1), repeat=PIXELS):
        image = np.array(values)[:, None]
        whole, fewer = run(net, image), run_without(net, found, image)
        for tensor, (want, have) in enumerate(zip(whole, fewer, strict=True)):
            kept, interval = ~found.gone[tensor], found.intervals[tensor]
            if ((want < interval.low) | (want > interval.high)).any():
                return f"tensor {tensor}: outside of its interval"
            if not np.array_equal(want[:, kept], have[:, kept]):
                return f"tensor {tensor}: {have.tolist()} instead of {want.tolist()}"
    return ""


SEEDS = range(50)


def test_what_stays_is_the_same_for_every_input() -> None:
    assert {seed: d for seed in SEEDS if (d := difference(seed))} == {}
    counts = [superfluous(drawn(seed)).count for seed in SEEDS]
    assert sum(count > 0 for count in counts) > len(SEEDS) // 3


def test_tensors_keep_multiples_of_four_or_two_as_they_had_them() -> None:
    for seed in SEEDS:
        for gone in superfluous(drawn(seed)).gone:
            kept, step = int((~gone).sum()), {0: 4, 2: 2}.get(gone.size % 4, 1)
            assert kept
            assert kept % step == 0


def test_a_constant_is_found_where_there_is_one() -> None:
    """Of one layer without a border, constants are exactly the channels that never change."""
    for seed in SEEDS:
        net = drawn(seed)
        first = net.layers[0]
        if not isinstance(first, Mixing) or first.fill is not None:
            continue
        inputs = range(LOW, HIGH + 1)
        seen = np.array([stored(summed(first, np.array([[x]]), first.bias))[0] for x in inputs])
        constant = superfluous(net).intervals[1].constant
        np.testing.assert_array_equal(constant, (seen == seen[0]).all(axis=0))


def everything(layer: Mixing, intervals: Sequence[Interval]) -> constant_channels.Flags:
    """A fault: a constant meets the border, whatever it reads."""
    return constant_channels.joined(layer, intervals).constant


def no_border(layer: Mixing, intervals: Sequence[Interval]) -> tuple[Interval, bool]:
    """A fault: intervals without what the border reads."""
    made, exact = _SUMS(Mixing(**{**vars(layer), "fill": None}), intervals)
    return made, exact


def one_sided(layer: PerChannel, gone: list[constant_channels.Flags]) -> None:
    """A fault: what is read goes, what is made of it stays."""
    for source, read in zip(layer.sources, layer.read, strict=True):
        gone[source][read[read >= 0]] &= True


_SUMS = constant_channels._sums
FAULTS = {"spared": everything, "_sums": no_border, "_narrow_per_channel": one_sided}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constant_channels, name, FAULTS[name])
    assert any(difference(seed) for seed in SEEDS)


def test_sums_that_leave_their_type_keep_their_inputs() -> None:
    net = drawn(next(s for s in SEEDS if superfluous(drawn(s)).count))
    narrow = tuple(
        Mixing(**{**vars(layer), "most": 1}) if isinstance(layer, Mixing) else layer
        for layer in net.layers
    )
    assert superfluous(ChannelNet(**{**vars(net), "layers": narrow})).count == 0
