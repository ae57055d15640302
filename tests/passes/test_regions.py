"""Modules partitioned for another backend: ``FuseOpsByPattern`` and ``RunCodegen``.

The patterns are those of TVM's example backend; its code generator is not in the wheels, so each
region is compiled by TVM on its own and put under the symbol that the partitioned module calls.
"""

from typing import Any

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import relax
from tvm.relax import op
from tvm.relax.backend.contrib import example_npu
from tvm.relax.backend.pattern_registry import get_patterns_with_prefix

from tests.llvm import TARGET
from tvm_serenity.memory import peak_bytes, profile
from tvm_serenity.passes import SerenityPlanMemory, SerenitySchedule
from tvm_serenity.relax.plan_memory import APART
from tvm_serenity.relax.read import WORKSPACES, read_function
from tvm_serenity.relax.schedule import ARENA
from tvm_serenity.runtime.vm import compare, run
from tvm_serenity.validation.network_inputs import random_inputs

assert example_npu.__name__  # imported for the patterns it registers


def generate(functions: Any, _options: Any, _names: Any) -> list[Any]:
    """The code generator ``relax.ext.example_npu``."""
    for function in functions:
        inner = function.body.blocks[0].bindings[0].value
        main = inner.without_attr("Composite").with_attr("global_symbol", "main")
        machine = relax.VirtualMachine(tvm.compile(tvm.IRModule({"main": main})), tvm.cpu())

        def call(*tensors: Any, machine: Any = machine) -> None:
            tensors[-1].copyfrom(machine["main"](*tensors[:-1]))

        tvm_ffi.register_global_func(str(function.attrs["global_symbol"]), call, override=True)
    return []


@pytest.fixture(scope="module", autouse=True)
def generator() -> None:
    tvm_ffi.register_global_func("relax.ext.example_npu", generate, override=True)


def partitioned(kinds: tuple[str, ...], branches: int = 3) -> Any:
    """Branches that widen and narrow, with operators of ``kinds`` for the example backend."""
    rng = np.random.default_rng(0)

    def weight(*shape: int) -> Any:
        return relax.const(rng.uniform(-1, 1, shape).astype("float32"))

    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 8, 16, 16), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            start = builder.emit(op.exp(x))
            wide = [
                builder.emit(op.nn.relu(builder.emit(op.nn.conv2d(start, weight(64, 8, 1, 1)))))
                for _ in range(branches)
            ]
            thin = [builder.emit(op.nn.conv2d(w, weight(4, 64, 1, 1))) for w in wide]
            whole = builder.emit(op.concat([builder.emit(op.tanh(t)) for t in thin], 1))
            result = builder.emit_output(op.mean(whole, [2, 3]))
        builder.emit_func_output(result)
    patterns = [p for p in get_patterns_with_prefix("example_npu") if p.name in kinds]
    assert len(patterns) == len(kinds)
    fuse = relax.transform.FuseOpsByPattern(patterns, bind_constants=True, annotate_codegen=True)
    made = relax.transform.RunCodegen()(fuse(builder.get()))
    calls = [b.value for b in made["main"].body.blocks[0].bindings]
    assert any("call_dps_packed" in str(call.op) for call in calls)
    return made


KINDS = [
    ("example_npu.conv2d_relu_fused",),
    ("example_npu.conv2d",),
    ("example_npu.conv2d_relu_fused", "example_npu.conv2d"),
]


@pytest.mark.parametrize("kinds", KINDS)
def test_regions_run_in_order_and_in_shared_memory(kinds: tuple[str, ...]) -> None:
    module = partitioned(kinds)
    inputs = random_inputs(module)
    stock = run(tvm.compile(module, TARGET), inputs)
    planned = SerenityPlanMemory()(SerenitySchedule()(module))
    ours = run(tvm.compile(planned, TARGET), inputs, poison=0xA5)
    assert compare(stock.outputs, ours.outputs)["identical"]
    attrs = planned["main"].attrs
    total = int(attrs.get(ARENA, 0)) + int(attrs[APART])
    results = sum(array.nbytes for array in ours.outputs)
    assert sum(ours.storages) == total + results
    assert total < sum(stock.storages) - results
    assert total >= peak_bytes(read_function(SerenitySchedule()(module)).graph)
    pipeline = relax.get_pipeline("serenity", validate=False)
    whole = run(tvm.compile(module, TARGET, relax_pipeline=pipeline), inputs, poison=0x5A)
    assert np.allclose(stock.outputs[0], whole.outputs[0], rtol=1e-5, atol=1e-5)


def test_regions_are_given_tensors_at_the_start_of_their_storage() -> None:
    module = SerenityPlanMemory()(SerenitySchedule()(partitioned(KINDS[-1])))
    offsets, outside = {}, []
    for binding in module["main"].body.blocks[0].bindings:
        value = binding.value
        if "alloc_tensor" in str(value.op):
            offsets[binding.var] = getattr(value.args[1], "value", 0)
        elif isinstance(value.op, relax.ExternFunc):
            outside += [arg for arg in value.args if arg in offsets]
    assert len(outside) >= 6
    assert {int(offsets[arg]) for arg in outside} == {0}


def test_what_a_region_allocates_counts_where_it_is_stated() -> None:
    module = partitioned(KINDS[0])
    graph = read_function(module).graph
    symbols = [call.kind for call in graph.ops if call.kind.endswith("example_npu")]
    assert len(symbols) == 3
    stated = module.with_attr(WORKSPACES, dict.fromkeys(symbols, 10**6))
    live = {graph.ops[step.op].kind: step.live_bytes for step in profile(graph).steps}
    assert peak_bytes(read_function(stated).graph) == 10**6 + max(live[s] for s in symbols)
    planned = SerenityPlanMemory()(stated)
    assert int(planned["main"].attrs[APART]) < 10**6  # it is the region's own
