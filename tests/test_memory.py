import random

import pytest

from tests.random_graphs import random_graph
from tvm_serenity.graph import Graph
from tvm_serenity.graph.text import parse
from tvm_serenity.memory import live_ranges, peak_bytes, peak_of, profile
from tvm_serenity.schedule import naive_peak

EXAMPLE = """
    input x[100]
    a conv: x -> y[60]; workspace 7
    b relu: y -> z[60]; in-place y
    c reshape: z -> v[60]; view z
    d pool: v -> w[10]
    e add: w x -> o[5]
    output o
"""


def test_ranges_views_in_place_and_workspace() -> None:
    ranges = {r.name: (r.start, r.stop, r.size_bytes) for r in live_ranges(parse(EXAMPLE))}
    assert ranges == {
        "x": (0, 5, 100),
        "y": (0, 4, 60),  # z takes y over, v shows z
        "w": (3, 5, 10),
        "o": (4, 5, 5),
        "a workspace": (0, 1, 7),
    }


def test_the_profile_names_the_peak() -> None:
    graph = parse(EXAMPLE)
    shown = profile(graph)
    assert [s.live_bytes for s in shown.steps] == [167, 160, 160, 170, 115]
    assert (shown.peak_bytes, shown.peak_step) == (170, 3)
    assert [r.name for r in shown.peak_ranges] == ["x", "y", "w"]
    assert peak_bytes(graph) == naive_peak(graph, range(5)) == 170


def test_in_place_is_not_taken_while_the_input_is_still_needed() -> None:
    text = "input x[8]\na: x -> y[8]; in-place x\nb: x y -> z[8]; in-place y x\noutput z"
    assert [s.live_bytes for s in profile(parse(text)).steps] == [16, 16]


def test_an_output_is_never_overwritten_and_dead_ends_count() -> None:
    text = "input x[8]\na: x -> y[8] dead[4]\nb: y -> z[8]; in-place y\noutput y z"
    assert [s.live_bytes for s in profile(parse(text)).steps] == [20, 16]


def test_unread_inputs_and_constants_cost_nothing() -> None:
    text = "input x[8] unread[99]\nconst w[50]\ndq: w -> f[200]\nm: x f -> y[8]\noutput y"
    assert [s.live_bytes for s in profile(parse(text)).steps] == [8, 16]


def random_order(rng: random.Random, graph: Graph) -> list[int]:
    left, order = set(range(len(graph.ops))), list[int]()
    while left:
        ready = sorted(op for op in left if left.isdisjoint(graph.predecessors[op]))
        order.append(rng.choice(ready))
        left.remove(order[-1])
    return order


@pytest.mark.parametrize("seed", range(300))
def test_the_peak_alone_is_what_the_profile_says(seed: int) -> None:
    """Ranges by size, then by start, then by name; who holds what, from the definition."""
    rng = random.Random(seed)
    graph = random_graph(rng, rng.randint(1, 14))
    order = random_order(rng, graph)
    found, shown = peak_of(graph, order), profile(graph, order)
    assert (found.size_bytes, found.step) == (shown.peak_bytes, shown.peak_step)
    assert found.op == order[found.step]
    assert found.ranges == shown.peak_ranges
    assert found.sizes.tolist() == [r.size_bytes for r in shown.peak_ranges]
    assert [found.name(i) for i in range(len(found.sizes))] == [r.name for r in found.ranges]
    assert found.workspace.tolist() == [r.workspace_of is not None for r in found.ranges]
    storages = {graph.storage[t] for t in rng.sample(range(len(graph.tensors)), 2)}
    assert found.holding(storages).tolist() == [
        not storages.isdisjoint(graph.storage[t] for t in r.tensors) for r in found.ranges
    ]
