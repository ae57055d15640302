"""The passes on the Relax VM: what is executed, in which order, in how many bytes."""

from typing import Any

import pytest
import tvm
from tvm import relax

from tests.cases import sampled
from tests.llvm import TARGET
from tests.passes import nets
from tvm_serenity.errors import InputError, UnsupportedError
from tvm_serenity.memory import peak_bytes
from tvm_serenity.passes import LeanKernels, SerenityPlanMemory, SerenitySchedule
from tvm_serenity.relax.lower import lowered
from tvm_serenity.relax.read import read_function
from tvm_serenity.relax.schedule import ARENA
from tvm_serenity.runtime.vm import Run, compare, run
from tvm_serenity.schedule import schedule
from tvm_serenity.validation.network_inputs import random_inputs


def execute(module: Any, source: Any, pipeline: Any = "default") -> Run:
    return run(
        tvm.compile(module, TARGET, relax_pipeline=pipeline),
        random_inputs(source),
    )


@pytest.mark.parametrize("name", sampled(nets.NETS, 3))
def test_outputs_stay_bit_identical(name: str) -> None:
    module = nets.build(name)
    stock = execute(module, module)
    given = execute(module, module, relax.get_pipeline("serenity", method="given"))
    ours = execute(module, module, relax.get_pipeline("serenity", validate=False))
    assert compare(given.outputs, ours.outputs) == {"identical": True, "max_abs_error": 0.0}
    assert compare(stock.outputs, ours.outputs)["max_abs_error"] < 1e-4
    assert any(array.any() for array in ours.outputs)


@pytest.mark.parametrize("name", nets.NETS)
@pytest.mark.parametrize("lean", [False, True])
def test_the_vm_allocates_the_planned_arena_and_the_results(name: str, lean: bool) -> None:
    module = nets.build(name)
    planned = SerenityPlanMemory()((LeanKernels() if lean else SerenitySchedule("given"))(module))
    found = execute(planned, module)
    arena = int(planned["main"].attrs[ARENA])
    assert found.storages[0] == arena
    assert sum(found.storages[1:]) == sum(a.nbytes for a in found.outputs)
    assert arena >= peak_bytes(
        read_function(lowered(module) if not lean else LeanKernels()(module)).graph
    )


@pytest.mark.parametrize("name", sampled(nets.NETS, 3))
def test_the_scheduled_order_is_the_executed_order(name: str) -> None:
    module = nets.build(name)
    graph = read_function(lowered(module)).graph
    order = schedule(graph).order
    intended = tuple(graph.ops[op].kind for op in order if graph.ops[op].view_of is None)
    scheduled = SerenitySchedule()(module)
    for pipeline in ("default", relax.get_pipeline("serenity", method="given", lean=False)):
        assert execute(scheduled, module, pipeline).kernels == intended


def test_order_alone_saves_memory_in_tvms_own_planner() -> None:
    module = nets.build("branches")
    fused = execute(module, module, relax.get_default_pipeline(tvm.target.Target("llvm")))
    ours = execute(SerenitySchedule()(module), module)
    assert ours.allocated_bytes < fused.allocated_bytes
    assert compare(fused.outputs, ours.outputs)["identical"]


def test_the_passes_compose_and_lower_for_themselves() -> None:
    module = nets.build("residual")
    both = tvm.transform.Sequential([SerenitySchedule(), SerenityPlanMemory()])(module)
    one_by_one = SerenityPlanMemory()(SerenitySchedule()(lowered(module)))
    tvm.ir.assert_structural_equal(both, one_by_one)
    assert compare(execute(both, module).outputs, execute(module, module).outputs)["identical"]


def test_results_may_stay_in_the_arena() -> None:
    module = nets.build("tuples")
    planned = SerenityPlanMemory(outputs="arena")(SerenitySchedule()(module))
    found = execute(planned, module)
    assert found.storages == (int(planned["main"].attrs[ARENA]),)
    assert compare(found.outputs, execute(module, module).outputs)["identical"]


def test_scheduling_keeps_every_binding() -> None:
    module = lowered(nets.build("branches"))
    before = {b.var for b in module["main"].body.blocks[0].bindings}
    after = {b.var for b in SerenitySchedule()(module)["main"].body.blocks[0].bindings}
    assert before == after


def test_lean_kernels_need_no_scratch_for_convolutions() -> None:
    graph = read_function(LeanKernels()(nets.build("branches"))).graph
    assert {op.workspace_bytes for op in graph.ops} == {0}
    assert any(
        op.workspace_bytes for op in read_function(lowered(nets.build("branches"))).graph.ops
    )


@pytest.mark.parametrize("make_pass", [SerenitySchedule, SerenityPlanMemory, LeanKernels])
def test_symbolic_shapes_are_refused_by_name(make_pass: Any) -> None:
    if make_pass is LeanKernels:
        LeanKernels()(nets.symbolic())  # kernels of any shape may be lean
        return
    with pytest.raises(UnsupportedError, match="tensor 'x' has a symbolic shape"):
        make_pass()(nets.symbolic())


def test_passes_cannot_be_imported_twice() -> None:
    with pytest.raises(ImportError, match=r"import tvm_serenity\.passes"):
        __import__("passes")


def test_kernels_shared_with_another_function_stay_as_they_are() -> None:
    module = lowered(nets.build("residual"))
    module["again"] = module["main"].with_attr("global_symbol", "again")
    planned = SerenityPlanMemory()(module)
    executable = tvm.compile(planned, "llvm")
    inputs = random_inputs(module)
    left, right = run(executable, inputs), run(executable, inputs, "again")
    assert left.storages[0] == int(planned["main"].attrs[ARENA])
    assert compare(left.outputs, right.outputs)["identical"]


def test_trivial_functions_have_an_empty_plan() -> None:
    module = nets.module((2, 3), lambda _builder, x: x)
    found = execute(SerenityPlanMemory()(SerenitySchedule()(module)), module)
    assert found.kernels == ()
    assert compare(found.outputs, random_inputs(module))["identical"]


def test_what_cannot_be_planned_says_so() -> None:
    planned = SerenityPlanMemory()(nets.build("views"))
    with pytest.raises(UnsupportedError, match="'main' already has a planned arena"):
        SerenityPlanMemory()(planned)
    with pytest.raises(InputError, match="no function 'main'"):
        SerenityPlanMemory()(tvm.IRModule({}))
    with pytest.raises(InputError, match="choose 'fresh' or 'arena'"):
        SerenityPlanMemory(outputs="mine")(nets.build("views"))
    packed = nets.module(
        (4,),
        lambda b, x: b.emit(
            relax.op.call_pure_packed("test.sum", x, ty_args=relax.TensorType((4,), "float32"))
        ),
    )
    with pytest.raises(UnsupportedError, match="only kernels can run in an arena"):
        SerenityPlanMemory()(packed)
    assert SerenitySchedule()(packed)["main"].body.blocks[0].bindings
