"""Regions of a net: rules applied in each alone are the rules applied in all, in linear work."""

from collections.abc import Callable, Iterable, Sequence

import pytest

from tests.large_graphs import training
from tests.rewrite import nets
from tests.rewrite.describe import lines
from tvm_serenity.graph import Graph
from tvm_serenity.memory import live_bytes, peak_bytes
from tvm_serenity.relax.rewrite_read import read_net
from tvm_serenity.rewrite import RULES, Net, RewriteOptions, rewrite
from tvm_serenity.rewrite.candidates import everywhere
from tvm_serenity.rewrite.from_graph import net_of
from tvm_serenity.rewrite.regions import NetRegion, Stitched, regions
from tvm_serenity.rewrite.rule import When

FREE = [rule.only(When.FREE) for rule in RULES.values() if rule.is_applied(When.FREE)]


def drawn(seed: int) -> Net:
    """A net without concats that nothing reads."""
    found: Net = read_net(nets.module(nets.random_body(seed, 30)), external=False).net
    return found.edit({})


def stitched(net: Net, cut: Iterable[NetRegion], change: Callable[[NetRegion], Net]) -> Net:
    """Each region changed, the last one first."""
    parts, made = list(cut), Stitched(net)
    for region in reversed(parts):
        made.put(region, change(region))
    return made.net(parts)


def in_regions(net: Net, cut: Iterable[NetRegion]) -> Net:
    """The free rules applied in each region alone."""
    return stitched(net, cut, lambda region: everywhere(region.alone(), FREE, []))


def differences(seeds: Sequence[int], closed: bool) -> list[int]:
    """The seeds whose nets differ by whether rules see regions or all of it."""
    found = []
    for seed in seeds:
        net = drawn(seed)
        names = [m.node for rule in FREE for m in rule.matches(net)]
        matched = frozenset(names if closed else ())
        if lines(in_regions(net, regions(net, matched))) != lines(everywhere(net, FREE, [])):
            found.append(seed)
    return found


def test_free_rules_stay_inside_regions() -> None:
    assert differences(range(60), closed=True) == []


def test_what_is_matched_must_be_said() -> None:
    assert differences(range(60), closed=False)


@pytest.mark.parametrize("seed", range(20))
def test_a_region_alone_needs_what_it_needs_in_the_net(seed: int) -> None:
    net = drawn(seed)
    cut, live = list(regions(net)), live_bytes(net.graph)
    assert [peak_bytes(region.alone().graph) for region in cut] == [
        max(live[region.start : region.end]) for region in cut
    ]
    assert lines(Stitched(net).net(cut)) == lines(net)
    assert lines(stitched(net, cut, NetRegion.alone)) == lines(net)


@pytest.mark.parametrize("ops", [1000, 4000])
def test_work_is_linear_in_the_regions(ops: int, monkeypatch: pytest.MonkeyPatch) -> None:
    net, seen = net_of(training(ops)), list[int]()
    assert len(list(regions(net))) > ops / 10
    check = Graph.__post_init__

    def counted(graph: Graph) -> None:
        seen.append(len(graph.tensors))
        check(graph)

    monkeypatch.setattr(Graph, "__post_init__", counted)
    rewrite(net, RewriteOptions())
    assert sum(seen) < 10 * len(net.values)
