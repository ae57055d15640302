"""Brute force, the paper's dynamic program and the exact search agree on random networks."""

import random
from collections.abc import Sequence

import pytest

from tests.arena import run_in_arena
from tests.cases import cases, sampled
from tests.random_graphs import brute_force_peak, random_graph, windowed_graph
from tvm_serenity.graph import Graph, Op, Tensor
from tvm_serenity.graph.text import parse
from tvm_serenity.memory import live_ranges, peak_bytes, profile
from tvm_serenity.plan import Buffer, check_plan, plan
from tvm_serenity.schedule import METHODS, check_schedule, naive_peak, schedule
from tvm_serenity.search.outcome import Outcome


@pytest.mark.parametrize("block", sampled(range(20), 12))
def test_brute_force_dp_and_exact_agree(block: int) -> None:
    for seed in cases(100, start=block * 100):
        graph = random_graph(random.Random(seed), seed % 9 + 1)
        best = brute_force_peak(graph)
        for method in ("dp", "exact"):
            found = schedule(graph, method)
            assert (found.peak_bytes, found.outcome) == (best, Outcome.OPTIMAL), (method, seed)
            assert found.lower_bound_bytes == best
            check_schedule(graph, found.order, best)
        assert found.statistics["given_peak_bytes"] == naive_peak(graph, range(len(graph.ops)))
        check_placed(graph, found.order)


def check_placed(graph: Graph, order: Sequence[int]) -> None:
    ranges = live_ranges(graph, order)
    buffers = [Buffer(r.name, r.start, r.stop, r.size_bytes) for r in ranges]
    found = plan(buffers)
    check_plan(buffers, found.offsets)
    assert found.arena_bytes >= found.lower_bound_bytes == peak_bytes(graph, order)
    run_in_arena(graph, order, ranges, found.offsets)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_tells_the_truth(method: str) -> None:
    for seed in range(60):
        graph = random_graph(random.Random(seed), 14)
        found = schedule(graph, method)
        check_schedule(graph, found.order, found.peak_bytes)
        assert found.lower_bound_bytes <= found.peak_bytes
        assert (found.outcome is Outcome.OPTIMAL) == (found.lower_bound_bytes == found.peak_bytes)
        assert found.peak_bytes == peak_bytes(graph, found.order)
        assert found.peak_bytes == profile(graph, found.order).peak_bytes
        if method in ("auto", "exact", "dp"):
            assert found.peak_bytes <= peak_bytes(graph)


def test_equal_calls_give_equal_orders() -> None:
    graph = random_graph(random.Random(5), 30, features=False)
    assert schedule(graph).order == schedule(graph).order


def test_the_arena_simulation_catches_an_overlap() -> None:
    graph = parse("input x[4]\na: x -> y[4]\nb: x y -> z[4]\noutput z")
    ranges = live_ranges(graph)
    run_in_arena(graph, range(2), ranges, [0, 4, 8])
    for offsets in ([0, 3, 8], [0, 4, 6]):
        with pytest.raises(AssertionError):
            run_in_arena(graph, range(2), ranges, offsets)


def test_a_view_of_no_bytes_keeps_nothing_alive() -> None:
    tensors = (Tensor("x", 8), Tensor("size", 0), Tensor("y", 4), Tensor("z", 2))
    ops = (
        Op("shape", "", (0,), (1,), view_of=0),
        Op("first", "", (0,), (2,)),
        Op("second", "", (1, 2), (3,)),
    )
    graph = Graph("net", tensors, ops, (0,), (3,))
    check_schedule(graph, (0, 1, 2), peak_bytes(graph))
    assert peak_bytes(graph) == 12


def test_the_checker_reads_a_large_network_once() -> None:
    graph = windowed_graph(random.Random(1), 50_000, 20)
    check_schedule(graph, range(50_000), peak_bytes(graph))
