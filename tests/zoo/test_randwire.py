"""Random wiring and the stages made of it; the example of Liberis and Lane."""

from collections.abc import Sequence

import networkx as nx
import pytest

from tests.zoo.reading import Layer, layers
from tvm_serenity import zoo
from tvm_serenity.zoo.wiring import Wiring

GRAPHS = [Wiring(), Wiring(n=64), Wiring(n=20, model="er"), Wiring(n=20, model="ba")]


@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize("wiring", GRAPHS, ids=str)
def test_edges_go_up_and_connect_all(wiring: Wiring, seed: int) -> None:
    found = wiring.predecessors(seed)
    assert found == wiring.predecessors(seed)
    assert found != wiring.predecessors(seed + 1)
    graph = nx.Graph((a, b) for b, before in enumerate(found) for a in before)
    assert sorted(graph) == list(range(wiring.n))
    assert nx.is_connected(graph)
    assert all(a < b for b, before in enumerate(found) for a in before)
    assert all(before == sorted(set(before)) for before in found)


def test_ws_is_networkx_connected_generator() -> None:
    graph = nx.connected_watts_strogatz_graph(32, 4, 0.75, tries=100, seed=3)
    edges = {(a, b) for b, before in enumerate(Wiring().predecessors(3)) for a in before}
    assert edges == {(min(e), max(e)) for e in graph.edges}


def test_a_stage_has_a_separable_convolution_a_node_and_a_sum_of_its_inputs() -> None:
    wiring = Wiring(n=16).predecessors(5)
    ops = layers(zoo.build("randwire?n=16&seed=5&channels=4&size=8"))
    inputs = sum(not before for before in wiring)
    outputs = set(range(16)) - {a for before in wiring for a in before}
    joined = [len(before) for before in wiring if len(before) > 1]
    count = {kind: sum(op.kind == kind for op in ops) for kind in {op.kind for op in ops}}
    assert count == {
        "nn.depthwise": 16,
        "nn.conv2d": 16,
        "multiply": sum(joined) + (len(outputs) > 1),
        "add": sum(n - 1 for n in joined) + len(outputs) - 1,
    }
    assert sum(op.inputs == (-1,) for op in ops) == inputs
    assert {op.elements for op in ops} == {4 * 4 * 4}


def peak(ops: Sequence[Layer], order: Sequence[int], given: int) -> int:
    """The most elements live at once: inputs, output and what is held, ``given`` the input's."""
    size = {-1: given} | {i: op.elements for i, op in enumerate(ops)}
    live, worst = {-1}, 0
    for position, i in enumerate(order):
        live.add(i)
        worst = max(worst, sum(size[t] for t in live))
        later = {t for j in order[position + 1 :] for t in ops[j].inputs}
        live = {t for t in live if t in later or t == len(ops) - 1}
    return worst


def test_liberis_and_lanes_figures() -> None:
    ops = layers(zoo.build("liberis-lane"))
    assert [op.elements for op in ops] == [3136, 1568, 512, 512, 256, 256, 512]
    assert peak(ops, range(7), 1568) == 5216
    assert peak(ops, [0, 3, 5, 1, 2, 4, 6], 1568) == 4960
