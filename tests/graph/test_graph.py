import pickle
import random
from dataclasses import fields, replace
from typing import Any

import pytest

from tests.random_graphs import random_graph
from tvm_serenity.errors import CycleError, GraphError
from tvm_serenity.graph import Graph, Op, Role, Tensor, complete_order, is_order
from tvm_serenity.graph.text import dump, parse
from tvm_serenity.memory import peak_bytes, profile
from tvm_serenity.schedule.check import naive_peak


def make(ops: list[Op], tensors: int = 3, inputs: tuple[int, ...] = ()) -> Graph:
    return Graph("g", tuple(Tensor(f"t{i}", 8) for i in range(tensors)), tuple(ops), inputs, ())


@pytest.mark.parametrize(
    ("ops", "message"),
    [
        ([Op("a", "", (0,), (1,))], "op 'a' reads tensor 't0', which no op writes"),
        ([Op("a", "", (7,), (1,))], "op 'a': unknown tensor index 7; the graph has 3 tensors"),
        (
            [Op("a", "", (), (1,)), Op("b", "", (), (1,))],
            "op 'b' writes tensor 't1', which op 'a' writes too",
        ),
        ([Op("a", "", (1,), (0,)), Op("b", "", (), (1,))], "op 'a' reads tensor 't1' before"),
        ([Op("a", "", (), (0,), -1)], "op 'a': its workspace is -1 bytes"),
        ([Op("a", "", (), (0,)), Op("b", "", (0,), (1,), 0, 2)], "op 'b': its view is of"),
        ([Op("a", "", (), (0,)), Op("b", "", (0,), (1,), 0, None, (2,))], "op 'b': in-place"),
        ([Op("a", "", (), (0,), 2**63)], "op 'a': the sum of all sizes up to its workspace"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(ops: list[Op], message: str) -> None:
    with pytest.raises(GraphError, match=message.replace("'", "'")):
        make(ops)


def test_a_cycle_is_named_in_order() -> None:
    ops = [Op("a", "", (2,), (0,)), Op("b", "", (0,), (1,)), Op("c", "", (1,), (2,))]
    with pytest.raises(CycleError, match="'a' -> 'b' -> 'c' -> 'a'"):
        make(ops)


def test_sizes_are_bounded() -> None:
    with pytest.raises(GraphError, match="its size is -1 bytes"):
        Graph("g", (Tensor("t", -1),), (), (), ())
    big = (Tensor("t", 2**62), Tensor("u", 2**62))
    with pytest.raises(GraphError, match="'u': the sum of all sizes up to it exceeds"):
        Graph("g", big, (), (), ())


def test_in_place_needs_equal_sizes() -> None:
    tensors = (Tensor("x", 8), Tensor("y", 4))
    with pytest.raises(GraphError, match="'x' has 8 bytes and 'y' has 4"):
        Graph("g", tensors, (Op("a", "", (0,), (1,), 0, None, (0,)),), (0,), (1,))


def test_over_saves_no_more_than_both_hold() -> None:
    tensors = (Tensor("x", 8), Tensor("y", 4))
    graph = Graph("g", tensors, (Op("a", "", (0,), (1,), over=(0,), over_bytes=4),), (0,), (1,))
    assert peak_bytes(graph) == naive_peak(graph, (0,)) == 8
    assert profile(graph).peak_bytes == 8
    assert dump(parse(dump(graph))) == dump(graph)
    for more in (5, -1, 0):
        with pytest.raises(GraphError, match=r"overlap with 'x' is .* it must be 1 to 4 bytes"):
            Graph("g", tensors, (Op("a", "", (0,), (1,), over=(0,), over_bytes=more),), (0,), (1,))
    with pytest.raises(GraphError, match="is not one of its inputs"):
        Graph("g", tensors, (Op("a", "", (), (1,), over=(0,), over_bytes=4),), (0,), (1,))


def test_constants_of_constants_and_views_are_found() -> None:
    graph = parse(
        """
        input x[8]
        const w[4]
        dq dequantize: w -> v[16]
        mul: x v -> y[8]
        flat reshape: y -> z[8]; view y
        output z
        """
    )
    assert graph.constant_ops == {0}
    names = [t.name for t, counted in zip(graph.tensors, graph.in_profile, strict=True) if counted]
    assert names == ["x", "y", "z"]
    assert graph.storage[4] == graph.storage[3] == 3
    assert (graph.constant_bytes, graph.state_bytes) == (4, 0)


def test_operators_on_one_state_variable_keep_their_order() -> None:
    graph = parse(
        """
        input x[8]
        state h[8]
        read: h -> a[8]
        write: x h -> b[8]
        output a b
        """
    )
    assert graph.predecessors == ((), (0,))
    assert not is_order(graph, (1, 0))
    assert graph.tensors[1].role is Role.STATE


@pytest.mark.parametrize("seed", range(30))
def test_predecessors_among_some_ops_are_those_of_all_that_are_chosen(seed: int) -> None:
    rng = random.Random(seed)
    graph = random_graph(rng, rng.randint(1, 12))
    chosen = [op for op in range(len(graph.ops)) if rng.random() < rng.choice((0.3, 0.9))]
    expected = [[chosen.index(p) for p in graph.predecessors[i] if p in chosen] for i in chosen]
    assert [list(found) for found in graph.predecessors_among(chosen)] == expected


def test_complete_order_puts_what_is_left_out_before_its_first_reader() -> None:
    graph = parse("input x[1]\na: x -> p[1]\nb: x -> q[1]\nc: p -> r[1]\nd: q r -> s[1]\noutput s")
    assert complete_order(graph, [1, 3]) == (1, 0, 2, 3)
    assert complete_order(graph, []) == (0, 1, 2, 3)


def test_a_deep_chain_needs_no_recursion() -> None:
    count = 50_000
    tensors = tuple(Tensor(f"t{i}", 1) for i in range(count + 1))
    ops = tuple(Op(f"o{i}", "", (i,), (i + 1,)) for i in range(count))
    graph = Graph("chain", tensors, ops, (0,), (count,))
    assert complete_order(graph, [count - 1]) == tuple(range(count))


def test_a_graph_is_pickled_as_it_was_made() -> None:
    for seed in range(20):
        graph = random_graph(random.Random(seed), 20)
        plain = pickle.dumps(graph)
        assert graph.predecessors is not None  # derived, not sent
        assert pickle.dumps(graph) == plain
        again = pickle.loads(plain)
        assert again == graph
        assert again.tensors[0].role is graph.tensors[0].role
        assert again.predecessors == graph.predecessors


def test_digests_tell_graphs_apart() -> None:
    """Any field changed changes it; another graph with the same fields has the same."""
    graph = make([Op("a", "conv", (), (0,)), Op("b", "", (0,), (1,))])
    tensor, op = graph.tensors[0], graph.ops[0]
    changed: list[Graph] = [replace(graph, name="h"), replace(graph, outputs=(1,))]
    others: dict[str, Any] = {"name": "x", "size_bytes": 9, "shape": (8,), "dtype": "int8"}
    others |= {"role": Role.EXTERNAL}
    assert set(others) == {f.name for f in fields(Tensor)}
    for name, value in others.items():
        tensors = (replace(tensor, **{name: value}), *graph.tensors[1:])
        changed.append(replace(graph, tensors=tensors))
    own: dict[str, Any] = {"name": "x", "kind": "relu", "outputs": (0, 2), "workspace_bytes": 1}
    seconds = {"inputs", "view_of", "in_place", "over", "over_bytes"}
    assert {*own, *seconds} == {f.name for f in fields(Op)}
    for name, value in own.items():
        changed.append(replace(graph, ops=(replace(op, **{name: value}), *graph.ops[1:])))
    for second in (
        Op("b", "", (0,), (1,), 0, 0),
        Op("b", "", (0,), (1,), 0, None, (0,)),
        Op("b", "", (0,), (1,), 0, None, (), (0,), 4),
        Op("b", "", (0,), (1,), 0, None, (), (0,), 8),
        Op("b", "", (0, 0), (1,)),
    ):
        changed.append(replace(graph, ops=(op, second)))
    digests = [one.digest() for one in (graph, *changed)]
    assert len(set(digests)) == len(digests)
    assert pickle.loads(pickle.dumps(graph)).digest() == digests[0]
