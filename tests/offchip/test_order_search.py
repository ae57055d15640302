"""Orders for traffic: optimal where they say so, bounded, never worse, whatever the model."""

import random
from collections.abc import Iterator

import pytest

from tests.random_graphs import random_graph, windowed_graph
from tvm_serenity.errors import InputError
from tvm_serenity.graph import Graph, is_order
from tvm_serenity.graph.text import parse
from tvm_serenity.offchip import (
    InputPlace,
    Memory,
    Model,
    SearchOptions,
    Subject,
    TrafficOrder,
    policies,
    simulate,
    trace_of,
    traffic_order,
)
from tvm_serenity.offchip.network import NativeNetwork, network_of
from tvm_serenity.offchip.storages import Storages, storages_of
from tvm_serenity.schedule import schedule
from tvm_serenity.search.outcome import Outcome

needs_core = pytest.mark.skipif(policies.native is None, reason="the native core is not built")
SMALL = SearchOptions(local_accesses=3_000, exact_accesses=2_000_000)


def all_orders(graph: Graph, order: list[int]) -> Iterator[list[int]]:
    if len(order) == len(graph.ops):
        yield list(order)
    for op in range(len(graph.ops)):
        if op not in order and all(p in order for p in graph.predecessors[op]):
            yield from all_orders(graph, [*order, op])


def traffic(graph: Graph, order: list[int], model: Model, capacity: int) -> int:
    return simulate(trace_of(graph, order, model), capacity).total_bytes


def check(graph: Graph, found: TrafficOrder, model: Model) -> None:
    assert is_order(graph, found.order)
    assert found.total_bytes == traffic(graph, list(found.order), model, found.capacity_bytes)
    assert found.total_bytes <= min(found.starts.values())
    assert found.compulsory_bytes <= found.lower_bound_bytes <= found.total_bytes
    assert (found.outcome is Outcome.OPTIMAL) == (found.gap == 0.0)


@needs_core
@pytest.mark.parametrize("place", InputPlace)
def test_brute_force_over_all_orders(place: InputPlace) -> None:
    proved = 0
    for seed in range(150):
        rng = random.Random(seed)
        graph = random_graph(rng, rng.randint(2, 6), features=seed % 3 > 0)
        block = rng.choice([1, 2, 4])
        model = Model(block, inputs=place)
        capacity = block * rng.choice([2, 4, 7, 12])
        orders = list(all_orders(graph, []))[:200]
        best = min(traffic(graph, order, model, capacity) for order in orders)
        found = traffic_order(graph, capacity, model, SMALL)
        check(graph, found, model)
        if len(orders) < 200:
            assert found.lower_bound_bytes <= best, seed
            if found.outcome is Outcome.OPTIMAL:
                assert found.total_bytes == best, seed
        proved += found.outcome is Outcome.OPTIMAL
    assert proved == 150


@needs_core
def test_root_bounds_hold_for_every_order() -> None:
    tight = 0
    for seed in range(300):
        rng = random.Random(seed)
        graph = random_graph(rng, rng.randint(3, 9), features=seed % 2 == 0, width=4)
        model = Model(rng.choice([1, 2]))
        capacity = 2 * rng.choice([1, 3, 6])
        exact = SearchOptions(local_accesses=0, exact_accesses=0)
        bound = traffic_order(graph, capacity, model, exact).lower_bound_bytes
        for method in ("given", "kahn", "dfs", "greedy", "exact"):
            order = list(schedule(graph, method).order)
            assert bound <= traffic(graph, order, model, capacity), seed
        tight += bound > trace_of(graph, None, model).compulsory_bytes
    assert tight > 100  # it says more than the compulsory traffic


@needs_core
def test_the_search_counts_what_the_simulator_counts() -> None:
    for seed in range(200):
        rng = random.Random(seed)
        graph = random_graph(rng, 12)
        model = Model(rng.choice([1, 2, 4]), inputs=rng.choice(list(InputPlace)))
        network = network_of(storages_of(graph, model))
        base = list(schedule(graph, "kahn").order)
        other = list(schedule(graph, "dfs").order)
        for slots in (1, 3, 8, 20):
            capacity = slots * (model.block_bytes or 1)
            a, b = network.inside(base), network.inside(other)
            assert network.core.traffic(slots, a) == traffic(graph, base, model, capacity)
            changed = [i for i in range(len(a)) if a[i] != b[i]]
            if changed:  # the same through the window of steps that differ
                found = network.core.window(slots, a, b, changed[0], changed[-1])
                assert found == traffic(graph, other, model, capacity), (seed, slots)


@needs_core
def test_windows_of_random_moves_are_exact() -> None:
    for seed in range(300):
        rng = random.Random(seed)
        graph = random_graph(rng, 16, features=False, width=2)
        model = Model(1)
        network = network_of(storages_of(graph, model))
        order = network.inside(range(16))
        at = rng.randrange(15)
        if at + 1 >= len(order) or order[at] in graph.predecessors[order[at + 1]]:
            continue
        moved = [*order[:at], order[at + 1], order[at], *order[at + 2 :]]
        for slots in (4, 9, 16):
            found = network.core.window(slots, order, moved, at, at + 1)
            assert found == network.core.traffic(slots, moved), (seed, slots)


def test_large_and_odd_models_are_never_worse() -> None:
    for seed in range(12):
        graph = random_graph(random.Random(seed), 40, width=4)
        for model in (Model(1), Model(2, Memory.SCRATCHPAD), Model(None, Memory.SCRATCHPAD)):
            need = trace_of(graph, None, model).need_bytes[0]
            found = traffic_order(graph, need + seed, model, SMALL)
            check(graph, found, model)


def test_equal_calls_give_equal_orders() -> None:
    graph = random_graph(random.Random(7), 30, features=False)
    first, second = (traffic_order(graph, 20, Model(1), SMALL) for _ in range(2))
    assert (first.order, first.total_bytes) == (second.order, second.total_bytes)


def test_without_the_core_the_best_start_is_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    from tvm_serenity.offchip import order_search

    graph = random_graph(random.Random(2), 9)
    monkeypatch.setattr(policies, "native", None)
    monkeypatch.setattr(order_search, "native", None)
    found = traffic_order(graph, 8, Model(1))
    check(graph, found, Model(1))
    assert found.statistics["core"] == "python"


DIAMONDS = """
input x[4]
a: x -> a[12]
b: x -> b[12]
c: a -> c[2]
d: b -> d[2]
e: c d -> e[2]
output e
"""


def test_a_diamond_runs_one_side_after_the_other() -> None:
    found = traffic_order(parse(DIAMONDS), 16, Model(1))
    assert found.outcome is Outcome.OPTIMAL
    assert found.starts["given"] > found.total_bytes == found.compulsory_bytes == 6


def test_parts_of_buffers_count_in_the_search_too() -> None:
    text = """
    input x[4]
    a: x -> buffer[8]
    b: x buffer -> whole[8]; view buffer
    c: x whole -> sum[8]; view whole
    output sum
    """
    subject = Subject(parse(text), ((0, 0, 4), (1, 4, 8)))
    found = traffic_order(subject, 8, Model(4))
    assert found.outcome is Outcome.OPTIMAL
    assert found.total_bytes == simulate(trace_of(subject, None, Model(4)), 8).total_bytes


def test_searches_that_would_take_much_memory_use_larger_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tvm_serenity.offchip import order_search

    graph = random_graph(random.Random(4), 20, features=False)
    for limit in (1, 100, 2_000):
        monkeypatch.setattr(order_search, "MAX_STATE_BYTES", limit)
        check(graph, traffic_order(graph, 24, Model(1), SMALL), Model(1))


@needs_core
def test_small_tensors_do_not_get_fewer_blocks_from_larger_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A block a tensor at least: of 60,000 operators a search would have taken 3.6 GB."""
    from tvm_serenity.offchip import order_search

    graph = windowed_graph(random.Random(3), 40, 4, 8)
    for limit, climbs in ((1_000, 0), (3_000, 1), (6_000, 1), (9_000, 1)):
        searched = list[int]()

        def noted(storages: Storages, searched: list[int] = searched) -> NativeNetwork:
            searched.append(len(storages.graph.ops) * storages.count_blocks)
            return network_of(storages)

        monkeypatch.setattr(order_search, "network_of", noted)
        monkeypatch.setattr(order_search, "MAX_STATE_BYTES", limit)
        options = SearchOptions(local_accesses=3_000, exact_ops=0)
        check(graph, traffic_order(graph, 24, Model(1), options), Model(1))
        assert len(searched) == climbs
        assert all(found <= limit for found in searched)


def test_tensors_of_no_bytes_and_graphs_of_no_ops() -> None:
    graph = parse("input x[0]\na: x -> y[0]\nb: y -> z[4]\noutput z")
    for model in (Model(1), Model(None, Memory.SCRATCHPAD)):
        found = traffic_order(graph, 4, model)
        assert (found.total_bytes, found.outcome) == (4, Outcome.OPTIMAL)
    nothing = parse("input x[8]\noutput x")
    assert traffic_order(nothing, 1, Model(1)).total_bytes == 0
    assert traffic_order(nothing, 1, Model(1, inputs=InputPlace.ON_CHIP)).total_bytes == 8


def test_bad_options_are_refused() -> None:
    with pytest.raises(InputError, match="seed must be 0 or more"):
        SearchOptions(seed=-1)
    with pytest.raises(InputError, match="less than one block"):
        traffic_order(parse(DIAMONDS), 100)
