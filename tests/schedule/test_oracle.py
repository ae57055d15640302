"""Brute force, the paper's dynamic program and the exact search agree on random networks."""

import random

import pytest

from tests.random_graphs import brute_force_peak, random_graph
from tvm_serenity.memory import peak_bytes, profile
from tvm_serenity.outcome import Outcome
from tvm_serenity.schedule import METHODS, check_schedule, schedule


@pytest.mark.parametrize("block", range(20))
def test_brute_force_dp_and_exact_agree(block: int) -> None:
    for seed in range(block * 100, block * 100 + 100):
        graph = random_graph(random.Random(seed), seed % 9 + 1)
        best = brute_force_peak(graph)
        for method in ("dp", "exact"):
            found = schedule(graph, method)
            assert (found.peak_bytes, found.outcome) == (best, Outcome.OPTIMAL), (method, seed)
            assert found.lower_bound_bytes == best
            check_schedule(graph, found.order, best)


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
