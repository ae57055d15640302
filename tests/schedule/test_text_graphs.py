"""Text-form graphs of any shape through every scheduler, planner and checker."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.arena import run_in_arena
from tvm_serenity import peak_bytes as least_peak
from tvm_serenity.errors import GraphError, InputError
from tvm_serenity.graph import MAX_BYTES, Graph, Op, Tensor
from tvm_serenity.graph.text import dump, parse
from tvm_serenity.memory import live_ranges, peak_bytes
from tvm_serenity.plan import Buffer, check_plan, plan
from tvm_serenity.schedule import METHODS, Options, check_schedule, schedule
from tvm_serenity.search.outcome import Outcome


@st.composite
def networks(draw: st.DrawFn) -> str:
    """The text form of a network of up to 10 ops with every option the form has."""
    sizes = st.integers(0, 40)
    lines, known = [], []
    for index in range(draw(st.integers(0, 2))):
        lines.append(f"input x{index}[{draw(sizes)}]")
        known.append(f"x{index}")
    lines.append("const w[7]")
    for index in range(draw(st.integers(0, 10))):
        reads = draw(st.lists(st.sampled_from([*known, "w"]), max_size=3, unique=True))
        made = [f"t{index}[{draw(sizes)}]"]
        if draw(st.booleans()):
            made.append(f"u{index}[{draw(sizes)}]")
        line = f"op{index} kind: {' '.join(reads)} -> {' '.join(made)}"
        if draw(st.booleans()):
            line += f"; workspace {draw(sizes)}"
        lines.append(line)
        known += [name.partition("[")[0] for name in made]
    outputs = draw(st.lists(st.sampled_from(known), unique=True)) if known else []
    if outputs:
        lines.append("output " + " ".join(outputs))
    return "\n".join(lines)


@settings(max_examples=150, deadline=None)
@given(networks())
def test_every_method_and_checker_agree_on_any_text(text: str) -> None:
    graph = parse(text)
    assert parse(dump(graph)).ops == parse(dump(parse(dump(graph)))).ops
    best = set()
    for method in METHODS:
        found = schedule(graph, method)
        check_schedule(graph, found.order, found.peak_bytes)
        assert found.lower_bound_bytes <= found.peak_bytes
        if method in ("auto", "exact", "dp"):
            assert found.outcome is Outcome.OPTIMAL
            best.add(found.peak_bytes)
    assert len(best) == 1
    order = schedule(graph).order
    ranges = live_ranges(graph, order)
    buffers = [Buffer(r.name, r.start, r.stop, r.size_bytes) for r in ranges]
    placed = plan(buffers)
    check_plan(buffers, placed.offsets)
    run_in_arena(graph, order, ranges, placed.offsets)
    assert placed.arena_bytes >= peak_bytes(graph, order)


@pytest.mark.parametrize("text", ["", "input x[5]\noutput x", "a: -> x[3]\noutput x"])
def test_the_smallest_graphs_have_an_answer(text: str) -> None:
    graph = parse(text)
    for method in METHODS:
        found = schedule(graph, method)
        assert found.outcome is Outcome.OPTIMAL
        assert found.peak_bytes == found.lower_bound_bytes == peak_bytes(graph)
    assert least_peak(graph) == peak_bytes(graph)


def test_sizes_near_the_limit_do_not_overflow() -> None:
    third = MAX_BYTES // 3
    tensors = tuple(Tensor(f"t{i}", third) for i in range(3))
    ops = (Op("a", "", (0,), (1,)), Op("b", "", (1,), (2,)))
    graph = Graph("large", tensors, ops, (0,), (2,))
    for method in METHODS:
        found = schedule(graph, method)
        assert found.peak_bytes == found.lower_bound_bytes == 2 * third
    with pytest.raises(InputError):
        plan([Buffer("a", 0, 2, MAX_BYTES), Buffer("b", 0, 2, MAX_BYTES)])


def test_sums_past_the_limit_and_repeated_names_are_refused_or_kept_apart() -> None:
    tensors = (Tensor("t", MAX_BYTES), Tensor("t", 1))
    with pytest.raises(GraphError, match="exceed"):
        Graph("huge", tensors, (), (0, 1), ())
    twins = Graph(
        "twins",
        (Tensor("t", 1), Tensor("t", 2), Tensor("t", 4)),
        (Op("o", "", (0,), (1,)), Op("o", "", (1,), (2,))),
        (0,),
        (2,),
    )
    assert schedule(twins).peak_bytes == 6


def test_a_budget_below_the_optimum_is_proved_infeasible() -> None:
    graph = parse("input x[8]\na: x -> y[8]\nb: y -> z[8]\noutput z")
    assert schedule(graph, "exact", Options(budget_bytes=15)).outcome is Outcome.INFEASIBLE
    assert schedule(graph, "exact", Options(budget_bytes=16)).outcome is Outcome.OPTIMAL


def test_large_chains_and_windows_are_ordered(capsys: pytest.CaptureFixture[str]) -> None:
    count = 100_000
    tensors = tuple(Tensor(f"t{i}", i % 7 + 1) for i in range(count + 1))
    ops = tuple(Op(f"o{i}", "", (i,), (i + 1,)) for i in range(count))
    graph = Graph("chain", tensors, ops, (0,), (count,))
    found = schedule(graph)
    assert (found.peak_bytes, found.outcome) == (13, Outcome.OPTIMAL)
    assert found.order == tuple(range(count))
    assert capsys.readouterr().out == ""
