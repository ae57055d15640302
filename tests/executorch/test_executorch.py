"""ExecuTorch programs in our order and plan: the same results, in less, or refused at export."""

from itertools import product
from typing import Any

import pytest

pytest.importorskip("executorch")
pytest.importorskip("torch")

import torch

from tests.cases import sampled
from tests.executorch.nets import Branches, Counter, Parts, Wired, exported, outputs, sizes
from tvm_serenity.errors import FitError, InputError, UnsupportedError
from tvm_serenity.executorch import SerenityPlanning, order_pass
from tvm_serenity.graph import Role, is_order
from tvm_serenity.schedule import check_schedule
from tvm_serenity.search.outcome import Outcome
from tvm_serenity.torch import read_nodes

pytestmark = pytest.mark.filterwarnings("ignore")  # of PyTorch and ExecuTorch, about themselves
IMAGE = (torch.linspace(-1, 1, 3 * 16 * 16).reshape(1, 3, 16, 16),)
GIVEN: list[dict[str, bool]] = [{}, {"alloc_graph_input": False, "alloc_graph_output": False}]
CASES: dict[str, Any] = {
    "branches": (Branches, IMAGE),
    "wired": (lambda: Wired(16), (torch.linspace(-1, 1, 16 * 64).reshape(1, 16, 8, 8),)),
    "counter": (Counter, (torch.linspace(-1, 1, 64).reshape(1, 64),)),
    "parts": (Parts, (torch.linspace(-1, 1, 4 * 48).reshape(4, 48).sin(),)),
}


@pytest.mark.parametrize(("name", "given"), sampled(product(CASES, GIVEN), 3))
def test_programs_compute_the_same_in_no_more(name: str, given: dict[str, Any]) -> None:
    make, inputs = CASES[name]
    found: list[Any] = []
    planning = SerenityPlanning()
    theirs = exported(make(), inputs, **given)
    ours = exported(
        make(),
        inputs,
        passes=lambda edge: [order_pass(edge, found=found)],
        planning=planning,
        **given,
    )
    for times in (1, 3):  # a buffer that was written is read again
        expected, results = outputs(theirs, inputs, times), outputs(ours, inputs, times)
        assert all(torch.equal(a, b) for a, b in zip(expected, results, strict=True))
    assert sum(sizes(ours)) <= sum(sizes(theirs))
    assert planning.plans[-1].outcome is Outcome.OPTIMAL
    assert sum(sizes(ours)) == planning.plans[-1].arena_bytes
    assert found[0].outcome is Outcome.OPTIMAL
    if name in ("branches", "wired"):
        assert sum(sizes(ours)) < sum(sizes(theirs))


@pytest.mark.parametrize("name", CASES)
def test_an_order_is_one_of_the_nodes_as_they_are(name: str) -> None:
    from executorch.exir import to_edge

    make, inputs = CASES[name]
    edge = to_edge(torch.export.export(make().eval(), inputs))
    module = edge.exported_program().graph_module
    before = read_nodes(
        module.graph,
        dict.fromkeys(edge.exported_program().graph_signature.user_inputs, Role.ACTIVATION),
    )
    names = {node.name for node in module.graph.nodes}
    found: list[Any] = []
    order_pass(edge, found=found)(module)
    assert is_order(before.graph, found[0].order)
    check_schedule(before.graph, found[0].order, found[0].peak_bytes)
    assert {node.name for node in module.graph.nodes} == names


def test_what_reads_a_buffer_before_it_is_written_still_does() -> None:
    graph = torch.fx.Graph()
    state, x = graph.placeholder("state"), graph.placeholder("x")
    read = graph.call_function(torch.ops.aten.mul.Tensor, (state, x))
    written = graph.call_function(torch.ops.aten.copy_.default, (state, x))
    after = graph.call_function(torch.ops.aten.add.Tensor, (state, x))
    graph.output((read, written, after))
    for node in graph.nodes:
        node.meta["val"] = torch.zeros(4)
    region = read_nodes(graph, {"x": Role.ACTIVATION})
    assert is_order(region.graph, (0, 1, 2))
    assert not any(is_order(region.graph, o) for o in [(1, 0, 2), (0, 2, 1), (2, 1, 0)])


def test_a_model_that_exceeds_its_memory_is_refused_with_what_is_alive() -> None:
    make, inputs = CASES["branches"]
    planning = SerenityPlanning(capacities=(40_000,))
    with pytest.raises(FitError) as refused:
        exported(make(), inputs, planning=planning)
    said = str(refused.value)
    assert said.startswith("no placement in 40,000 bytes (infeasible): ")
    assert "are live at once, in aten_convolution_default" in said
    assert "32,768" in said
    assert "\n" not in said


def test_tensors_are_spread_over_memories_of_their_own() -> None:
    make, inputs = CASES["branches"]
    whole = sizes(exported(make(), inputs, planning=SerenityPlanning()))[0]
    planning = SerenityPlanning(capacities=(70_000, 100_000))
    assert whole > 70_000
    program = exported(make(), inputs, planning=planning)
    first, second = sizes(program)
    assert first <= 70_000
    assert 0 < second <= 100_000
    values = program.executorch_program.execution_plan[0].values
    held = [getattr(v.val, "allocation_info", None) for v in values]
    assert {info.memory_id for info in held if info is not None} == {1, 2}
    with pytest.raises(FitError, match=r"no placement in 70,000 \+ 1,000 bytes"):
        exported(make(), inputs, planning=SerenityPlanning(capacities=(70_000, 1_000)))


def test_a_plan_of_overlapping_tensors_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace
    from importlib import import_module

    from tvm_serenity.errors import CheckError

    module: Any = import_module("tvm_serenity.executorch.planning")
    right = module.plan

    def wrong(*arguments: Any) -> Any:
        found = right(*arguments)
        return replace(found, offsets=(0,) * len(found.offsets))

    monkeypatch.setattr(module, "plan", wrong)
    make, inputs = CASES["branches"]
    with pytest.raises(CheckError):
        exported(make(), inputs, planning=SerenityPlanning())


def test_symbolic_sizes_are_refused_by_the_nodes_name() -> None:
    from executorch.exir import to_edge

    batch = torch.export.Dim("batch", min=1, max=8)
    program = torch.export.export(Parts(), CASES["parts"][1], dynamic_shapes=[{0: batch}])
    edge = to_edge(program)
    with pytest.raises(UnsupportedError, match=r"node 'x' has a symbolic shape"):
        order_pass(edge)(edge.exported_program().graph_module)


@pytest.mark.parametrize("capacities", [(), (-1,), ("64K",), (1024, -1)])
def test_capacities_that_are_no_memories_are_refused(capacities: Any) -> None:
    with pytest.raises(InputError, match="list the bytes of each memory"):
        SerenityPlanning(capacities=capacities)


def test_a_module_that_was_not_exported_has_no_order() -> None:
    with pytest.raises(InputError, match="needs the result of to_edge, not a Branches"):
        order_pass(Branches())
