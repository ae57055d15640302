"""The profile and the checker, as arrays, equal a walk op by op; both refuse what is wrong."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.large_graphs import FAMILIES
from tests.random_graphs import random_graph, windowed_graph
from tests.schedule.walk import walked_needs
from tvm_serenity.errors import CheckError
from tvm_serenity.graph import Graph, Role, is_order
from tvm_serenity.graph.text import parse
from tvm_serenity.memory import least_need, live_ranges, peak_bytes, peak_of, profile
from tvm_serenity.schedule import check_schedule, naive_peak

SEEDS = st.integers(0, 10**9)


def some_graph(rng: random.Random) -> Graph:
    """A graph with everything the memory model knows; tensors of the caller and layers over too."""
    if rng.random() < 0.2:
        return windowed_graph(rng, rng.randint(1, 40), 5)
    graph = random_graph(rng, rng.randint(0, 24))
    tensors = tuple(
        replace(t, role=Role.EXTERNAL)
        if t.role is Role.ACTIVATION and i in graph.outputs and rng.random() < 0.2
        else t
        for i, t in enumerate(graph.tensors)
    )
    ops = []
    for op in graph.ops:
        over = [t for t in op.inputs if graph.tensors[graph.storage[t]].size_bytes]
        if op.view_of is None and not op.in_place and op.outputs and over and rng.random() < 0.3:
            lain = (rng.choice(over),)
            made = graph.tensors[op.outputs[0]].size_bytes
            most = min(made, graph.tensors[graph.storage[lain[0]]].size_bytes)
            op = replace(op, over=lain, over_bytes=rng.randint(1, most)) if most else op
        ops.append(op)
    return graph.replace(tensors=tensors, ops=tuple(ops))


def some_order(graph: Graph, rng: random.Random) -> list[int]:
    """A valid order, drawn op by op."""
    waiting, order = set(range(len(graph.ops))), list[int]()
    while waiting:
        ready = [op for op in sorted(waiting) if waiting.isdisjoint(graph.predecessors[op])]
        order.append(rng.choice(ready))
        waiting.remove(order[-1])
    return order


def walked_peak(graph: Graph, order: Sequence[int]) -> int:
    start, needs = walked_needs(graph, order)
    return max([start, *(need for need in needs if need is not None)])


@settings(derandomize=True, max_examples=300, deadline=None)
@given(SEEDS)
def test_profiles_and_the_checker_equal_a_walk(seed: int) -> None:
    rng = random.Random(seed)
    graph = some_graph(rng)
    for order in (list(range(len(graph.ops))), some_order(graph, rng)):
        peak, (_, needs) = walked_peak(graph, order), walked_needs(graph, order)
        assert naive_peak(graph, order) == peak
        shown = profile(graph, order)
        for need, step in zip(needs, shown.steps, strict=True):
            assert need is None or step.live_bytes == need
        if graph.ops:
            assert peak_bytes(graph, order) == shown.peak_bytes == peak
            assert peak_of(graph, order).step == shown.peak_step
        assert least_need(graph)[0] <= max(peak, 0)
        ranges = live_ranges(graph, order)
        for i, live in enumerate(shown.live_sets()):
            saved = shown.ranges is not None and any(op.over for op in graph.ops)
            assert saved or sum(ranges[r].size_bytes for r in live) == shown.steps[i].live_bytes


@settings(derandomize=True, max_examples=300, deadline=None)
@given(SEEDS)
def test_the_checker_refuses_what_a_walk_refuses(seed: int) -> None:
    rng = random.Random(seed)
    graph = some_graph(rng)
    order = some_order(graph, rng)
    peak = naive_peak(graph, order)
    for wrong in (peak - 1, peak + 1):
        with pytest.raises(
            CheckError, match=f"needs {peak} bytes, but its stated peak is {wrong} bytes"
        ):
            check_schedule(graph, order, wrong)
    if not order:
        return
    one, two = rng.randrange(len(order)), rng.randrange(len(order))
    swapped, doubled = list(order), list(order)
    swapped[one], swapped[two] = order[two], order[one]
    doubled[one] = order[two]
    for mutant in (swapped, doubled, order[:-1], [*order, 0], [*order[:-1], len(order)]):
        try:
            least: int | None = walked_peak(graph, mutant)
        except CheckError as error:
            least, said = None, str(error)
        assert is_order(graph, mutant) == (least is not None)
        if least is None:
            with pytest.raises(CheckError) as refused:
                check_schedule(graph, mutant, peak)
            assert str(refused.value) == said
        else:
            check_schedule(graph, mutant, least)


def test_variables_keep_the_order_of_what_touches_them() -> None:
    text = "state s[4]\ninput x[4]\na: x s -> y[4]\nb: x s -> z[4]\noutput y z"
    check_schedule(parse(text), [0, 1], 12)
    with pytest.raises(CheckError, match="variable 's' do not run in their given order"):
        check_schedule(parse(text), [1, 0], 12)


@pytest.mark.parametrize("family", FAMILIES)
def test_large_graphs_equal_a_walk(family: str) -> None:
    graph = FAMILIES[family](3_000)
    order = some_order(graph, random.Random(1)) if family != "layered" else range(3_000)
    assert naive_peak(graph, order) == walked_peak(graph, order) == peak_bytes(graph, order)
