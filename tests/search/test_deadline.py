"""The deadline: blocks nest, only shorten, and end all that runs inside them."""

import time
from collections.abc import Sequence
from importlib import import_module

import pytest

from tests.large_graphs import layered
from tvm_serenity.graph import Graph
from tvm_serenity.graph.text import parse
from tvm_serenity.plan import Buffer, PlanOptions, check_plan, plan
from tvm_serenity.plan.joint import schedule_for_arena
from tvm_serenity.rewrite import RewriteOptions, order_alone, too_late_to_match
from tvm_serenity.rewrite.from_graph import net_of
from tvm_serenity.schedule import Options, check_schedule, schedule
from tvm_serenity.search.deadline import leaving, limit_left, seconds_left, spending, within
from tvm_serenity.search.outcome import Outcome


def test_blocks_nest_and_only_shorten() -> None:
    assert limit_left() is None
    assert seconds_left(3.0) == 3.0
    with within(100.0):
        with within(1000.0):
            assert 99 < seconds_left() <= 100
        with within(None, 0.25):
            assert 24 < seconds_left() <= 25
            with within(0.0):
                assert seconds_left() == 0.0
                assert limit_left(5.0) == 0.0
            assert seconds_left(1.0) == 1.0
        assert seconds_left() > 99
    assert limit_left() is None


def test_what_cannot_be_cut_short_is_left_time() -> None:
    with leaving(10.0):
        assert limit_left() is None
    with within(100.0):
        with leaving(30.0):
            assert 69 < seconds_left() <= 70
        with leaving(200.0):
            assert seconds_left() == 0.0
        assert seconds_left() > 99


def test_the_dynamic_program_sees_a_deadline_around_it() -> None:
    graph = layered(2_000)
    with within(0.0):
        found = schedule(graph, "dp")
    assert found.outcome is Outcome.TIMEOUT
    assert found.states < 10_000  # without a deadline it gives up after 100,000 of one row
    check_schedule(graph, found.order, found.peak_bytes)


def test_what_is_spent_is_spent_in_blocks_alone() -> None:
    with spending(1.0):
        assert seconds_left() == 1.0
        time.sleep(0.2)
        assert seconds_left() == 1.0
        with within(100.0, 0.5):
            assert 0.4 < seconds_left() <= 0.5
            with within(None, 0.5):
                assert seconds_left() <= 0.25
            time.sleep(0.1)
        assert 0.5 < seconds_left() < 0.91
        with within(None):
            time.sleep(0.05)
        assert limit_left() == seconds_left() < 0.86
        with spending(None):
            assert limit_left() is None
    assert limit_left() is None


def test_a_block_ends_with_its_error() -> None:
    with pytest.raises(ValueError, match="x"), within(0.0):
        raise ValueError("x")
    assert limit_left() is None


def _hard(branches: int) -> str:
    """Branches of odd sizes that meet at the end: many orders, none of them forced."""
    lines = ["input x[64]"]
    for i in range(branches):
        before = "x" if i < 3 else f"b{i * 7 % i} b{i * 5 % i}"
        lines.append(f"o{i}: {before} -> b{i}[{37 + i * 61 % 211}]")
    return "\n".join([*lines, "end: " + " ".join(f"b{i}" for i in range(branches)) + " -> y[8]"])


def test_what_runs_inside_ends_labelled_with_a_valid_answer() -> None:
    graph = parse(_hard(120) + "\noutput y")
    with within(0.0):
        joint = schedule_for_arena(graph, "auto", Options(), rounds=100)
        placed = plan(
            [Buffer(f"{i}", i * 7 % 31, i * 7 % 31 + 9, 97 + i * 61 % 211) for i in range(60)],
            options=PlanOptions(time_limit_s=None),
        )
    check_schedule(graph, joint.schedule.order, joint.schedule.peak_bytes)
    check_plan(placed.buffers, placed.offsets)
    assert placed.outcome is Outcome.TIMEOUT


def test_a_graph_too_large_for_the_time_left_keeps_its_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = parse(_hard(60) + "\noutput y")
    monkeypatch.setattr(import_module("tvm_serenity.schedule"), "LARGE_OPS", 10)
    found = schedule(graph, "exact", Options(time_limit_s=0.0))
    assert found.order == tuple(range(len(graph.ops)))
    assert found.statistics["limit"] == "time"
    assert found.outcome is Outcome.TIMEOUT or found.peak_bytes == found.lower_bound_bytes
    check_schedule(graph, found.order, found.peak_bytes)
    least = schedule(graph, "exact", Options(time_limit_s=20.0))
    assert 0 < found.lower_bound_bytes <= least.lower_bound_bytes


def test_a_net_too_large_for_the_time_left_is_not_matched_and_an_order_is_placed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command = import_module("tvm_serenity.commands.rewrite")
    rules = import_module("tvm_serenity.rewrite.rewrite")
    looked, orders = list[object](), list[Sequence[int]]()
    regions, place = rules.regions, command.place_in_time

    def matched(*arguments: object) -> object:
        looked.append(arguments)
        return regions(*arguments)

    def placed(graph: Graph, order: Sequence[int], *options: object) -> object:
        orders.append(order)
        return place(graph, order, *options)

    monkeypatch.setattr(rules, "regions", matched)
    monkeypatch.setattr(command, "place_in_time", placed)
    monkeypatch.setattr(import_module("tvm_serenity.schedule"), "LARGE_OPS", 0)
    net = net_of(parse(_hard(4)))
    with within(0.0):
        found = rules.rewrite(net)
    assert not looked
    assert found.best is found.ordered
    assert found.region_peaks == (found.given_bytes,)
    assert len(command.placed(found)) == 3
    assert orders == [found.ordered.order]
    with within(1000.0):
        rules.rewrite(net)
    assert looked


def test_a_search_without_a_limit_of_its_own_ends_with_the_block() -> None:
    graph = parse(_hard(400) + "\noutput y")
    began = time.monotonic()
    with within(1.0):
        schedule(graph, "exact")
    assert time.monotonic() - began < 20


def test_what_there_is_no_time_for_is_left_out_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = parse(_hard(10) + "\noutput y")
    monkeypatch.setattr(import_module("tvm_serenity.schedule"), "LARGE_OPS", 0)
    with within(0.0):
        late = schedule_for_arena(graph)
        assert too_late_to_match(graph)
        alone = order_alone(graph, RewriteOptions())
    assert not late.plan.is_placed
    assert (late.plan.statistics["limit"], late.interrupted) == ("time", False)
    assert alone.given_bytes == alone.best.peak_bytes == late.schedule.peak_bytes
    assert alone.ops == (len(graph.ops),) * 3
    assert alone.names == [op.name for op in graph.ops]
    with within(1000.0):
        assert not too_late_to_match(graph)
        assert schedule_for_arena(graph).plan.is_placed
