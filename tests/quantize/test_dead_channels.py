"""Channels that nothing reads, and channels whose weights are all 0: how many go is counted here.

Of networks small enough to say it beforehand; what stays is checked by LiteRT.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.cases import scaled
from tests.conformance.builder import Net
from tests.conformance.case import DIFFERENT, EQUAL, Case, Verdict, check
from tests.conformance.quantise import integer_file, ranges
from tests.quantize.running import REFERENCE
from tvm_serenity.relax import constant_channels, pipeline
from tvm_serenity.rewrite import constant_channels as rule

SEEDS = range(scaled(4, 6))
Flags = Any


@dataclass(frozen=True)
class Dead:
    """A network, and how many channels of it need not be computed."""

    net: Net
    count: int


def left_out(dead: Flags) -> int:
    """How many of a tensor's channels go: kernels work on channels by fours."""
    channels, step = dead.size, math.gcd(dead.size, 4)
    kept = max(-(-(channels - int(dead.sum())) // step) * step, step)
    return int(channels - kept)


def weights(net: Net, bias: bool = False) -> Any:
    """The weights or the bias of the last layer, to be changed."""
    return net.values[net.steps[-1].inputs[2 if bias else 1]].data


def drawn(seed: int) -> tuple[Net, Any, int, Flags]:
    """A network of one layer so far: it, its dice, its result, and channels to be dead."""
    rng = np.random.default_rng(seed)
    net = Net(seed)
    channels = int(rng.integers(4, 17))
    made = net.conv(net.input(1, 6, 5, 3), channels, 3, activation="RELU")
    return net, rng, made, rng.random(channels) < 0.6


def never_read(seed: int) -> Dead:
    """The next layer has weights 0 for some channels; for others but in its last tap."""
    net, rng, made, dead = drawn(seed)
    through = seed % 3 == 0
    if through:
        made = net.depthwise(made, 3, activation="RELU")
    made = net.conv(made, 5, 3)
    weights(net)[..., dead] = 0
    rare = ~dead & (rng.random(dead.size) < 0.5)
    weights(net)[:, :-1, :, rare] = 0
    weights(net)[:, :, :-1, rare] = 0
    net.output(made)
    return Dead(net, left_out(dead) * (1 + through))


def read_elsewhere(seed: int) -> Dead:
    """As before, but another layer reads some of these channels."""
    net, rng, made, dead = drawn(seed)
    also = dead & (rng.random(dead.size) < 0.5)
    first = net.conv(made, 4, 1)
    weights(net)[..., dead] = 0
    second = net.conv(made, 3, 3)
    weights(net)[..., dead & ~also] = 0
    net.output(first, second)
    return Dead(net, left_out(dead & ~also))


def without_weights(seed: int) -> Dead:
    """Some channels are a bias; where a border follows they go if they are what it reads, 0."""
    net, rng, made, dead = drawn(seed)
    weights(net)[dead] = 0
    bias = weights(net, bias=True)
    bias[dead] = np.where(rng.random(int(dead.sum())) < 0.5, -0.5, 0.5)
    border = seed % 2 == 0
    net.output(net.conv(made, 5, 3 if border else 1))
    return Dead(net, left_out(dead & (bias < 0) if border else dead))


FORMS = {f.__name__: f for f in (never_read, read_elsewhere, without_weights)}


def verdict_of(made: Dead, seed: int) -> Verdict:
    """What LiteRT says of a network."""
    dtype = ("int8", "uint8")[seed // 2 % 2]
    return check(
        Case("network", integer_file(made.net, ranges(made.net, REFERENCE), dtype), f"{seed}")
    )


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many channels of each module that is compiled are left out."""
    found: list[int] = []

    def counting(mod: Any) -> Any:
        made, folded = constant_channels.fold_constant_channels(mod)
        assert folded.gone == sum(gone for _, _, gone in folded.tensors)
        found.append(folded.gone)
        return made, folded

    monkeypatch.setattr(pipeline, "fold_constant_channels", counting)
    return found


@pytest.mark.parametrize("form", FORMS)
def test_dead_channels_are_all_left_out_and_no_other(form: str, counted: list[int]) -> None:
    nets = {seed: FORMS[form](seed) for seed in SEEDS}
    verdicts = {seed: verdict_of(made, seed) for seed, made in nets.items()}
    assert {v.status for v in verdicts.values()} == {EQUAL}, verdicts
    assert counted == [made.count for made in nets.values()]
    assert sum(n > 0 for n in counted) > len(SEEDS) // 3


def first_tap(layer: rule.Mixing, gone: rule.Flags) -> rule.Flags:
    """A fault: what has weights in other taps is taken for not read."""
    return np.asarray(~layer.weights[:1, :, ~gone].any(axis=(0, 2)))


def any_reader(layer: rule.Mixing, _gone: rule.Flags) -> rule.Flags:
    """A fault: every channel is taken for not read."""
    return np.ones(layer.weights.shape[1], np.bool_)


@pytest.mark.parametrize(
    ("fault", "form"), [(first_tap, "never_read"), (any_reader, "read_elsewhere")]
)
def test_a_fault_is_seen(fault: Any, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule, "_unread", fault)
    verdicts = (verdict_of(FORMS[form](seed), seed) for seed in SEEDS)
    assert any(v.status == DIFFERENT and v.reason.startswith("inputs") for v in verdicts)
