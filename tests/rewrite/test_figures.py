"""The published figures of SwiftNet, and those beyond them."""

from pathlib import Path

import pytest

from tests.rewrite import nets
from tvm_serenity import zoo
from tvm_serenity.memory import peak_bytes
from tvm_serenity.relax.rewrite_read import read_net
from tvm_serenity.rewrite import RULES, Net, RewriteOptions, Rewritten, rewrite
from tvm_serenity.schedule import check_schedule

SWIFTNET = "models/swiftnet/swiftnet_vww_224_uint8.tflite"


def net(spec: str) -> Net:
    found: Net = read_net(zoo.build(spec), external=False).net
    return found


def run(found: Net, rules: str = "all") -> Rewritten:
    result = rewrite(found, RewriteOptions(rules=rules))
    check_schedule(result.net.graph, result.best.order, result.best.peak_bytes)
    assert peak_bytes(result.net.graph) == result.best.peak_bytes
    if rules == "all":
        assert result.best.peak_bytes <= result.ordered.peak_bytes
    return result


@pytest.mark.parametrize(
    ("cell", "nodes", "peak"), [("a", 33, 752_640), ("b", 28, 225_792), ("c", 29, 77_616)]
)
def test_the_papers_two_rules_wherever_they_match(cell: str, nodes: int, peak: int) -> None:
    result = run(net(f"swiftnet-cell-{cell}"), "paper")
    assert (result.net.count, result.best.peak_bytes) == (nodes, peak)
    assert str(result.best.outcome) == "optimal"


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize(("cell", "peak"), [("a", 652_288), ("b", 213_248), ("c", 65_072)])
def test_all_rules_go_below_the_paper(cell: str, peak: int, layout: str) -> None:
    result = run(net(f"swiftnet-cell-{cell}?layout={layout}"))
    assert result.best.peak_bytes == peak
    assert str(result.best.outcome) == "optimal"


@pytest.mark.parametrize(
    ("name", "without", "peak"),
    [("shortcut", 2_304, 2_016), ("mixed", 3_456, 2_880), ("depthwise", 2_304, 2_304)],
)
def test_rules_that_prepare_others_lower_the_peak(name: str, without: int, peak: int) -> None:
    found: Net = read_net(nets.module(nets.NETS[name]), external=False).net
    others = ",".join(rule for rule in RULES if rule != "pairwise")
    assert run(found, others).best.peak_bytes == without
    assert run(found).best.peak_bytes == peak


def test_whole_swiftnet_reaches_the_floor_of_its_stem_and_each_cell_its_own() -> None:
    result = run(net("swiftnet"))
    assert result.best.peak_bytes == 802_816
    assert {652_288, 213_248, 65_072} <= set(result.region_peaks)


def test_the_result_does_not_depend_on_the_run() -> None:
    first, second = (run(net("swiftnet-cell-b")) for _ in range(2))
    assert first.net == second.net
    assert first.report == second.report


def test_int32_sums_of_the_uint8_file_are_counted_as_such(shared: Path) -> None:
    from tvm_serenity.frontends import load
    from tvm_serenity.rewrite.from_graph import net_of

    result = run(net_of(load(shared / SWIFTNET).graph))
    assert result.given_bytes == 351_232
    assert result.best.peak_bytes == 200_704
    worse = [e for e in result.report.rejected if e.match.rule == "channelwise"]
    assert any((e.peak_after_bytes or 0) > (e.peak_before_bytes or 0) for e in worse)
    assert {e.match.rule for e in result.report.refused} == {"residual"}


@pytest.mark.parametrize("spec", ["darts-normal-cell", "nasnet-cell", "amoebanet-cell", "randwire"])
def test_never_worse_and_explained(spec: str) -> None:
    result = run(net(spec))
    assert result.best.peak_bytes < result.ordered.peak_bytes
    named = {e.match for e in result.report.applied}
    assert named
    assert not named & {e.match for e in result.report.refused}
    assert all(e.reason for e in result.report.refused)
