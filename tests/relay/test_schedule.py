"""SerenitySchedule on Relay: the user's line, outputs to the bit, the order that runs."""

import pytest

relay = pytest.importorskip("tvm.relay", reason="needs a TVM with Relay: make relay-test")

import numpy as np  # noqa: E402
import tvm  # noqa: E402

from tests.relay.nets import (  # noqa: E402
    context,
    dataflow,
    graph_executor_of,
    inputs,
    joined,
    module,
    outputs,
    recorded_calls,
    wide,
)
from tvm_serenity.memory import peak_bytes  # noqa: E402
from tvm_serenity.passes.relay import SerenityRewrite, SerenitySchedule  # noqa: E402
from tvm_serenity.relay import ArenaExecutor, graph_of, pool_bytes, share_storage  # noqa: E402
from tvm_serenity.relay.lower import fused  # noqa: E402
from tvm_serenity.relay.read import read_function  # noqa: E402
from tvm_serenity.relay.schedule import schedule_module  # noqa: E402
from tvm_serenity.schedule import check_schedule  # noqa: E402


def test_the_users_line() -> None:
    mod = wide()
    with tvm.target.Target("llvm"), context():
        plain = relay.build(mod, "llvm")
        better = tvm.transform.Sequential([SerenityRewrite(), SerenitySchedule()])(mod)
        built = relay.build(better, "llvm")
    values = inputs(mod)
    expected = outputs(graph_executor_of(plain), values)
    found = outputs(graph_executor_of(built), values)
    assert np.abs(expected[0] - found[0]).max() < 1e-4
    assert pool_bytes(built) < pool_bytes(plain)
    assert len(graph_of(built).calls) > len(graph_of(plain).calls)


@pytest.mark.parametrize("name", ["nasnet", "resnet8"])
def test_order_storage_and_arena(name: str) -> None:
    """The same calls in another order: outputs to the bit, in ever fewer bytes."""
    mod = module(name)
    with context():
        lowered = fused(mod, "llvm")
        plain = relay.build(lowered, "llvm")
        ordered, found = schedule_module(lowered, "llvm")
        built = relay.build(ordered, "llvm")
    check_schedule(read_function(lowered["main"]).graph, found.order, found.peak_bytes)
    values = inputs(mod)
    expected = outputs(graph_executor_of(plain), values)
    assert sorted(graph_of(built).calls) == sorted(graph_of(plain).calls)
    assert pool_bytes(built) <= pool_bytes(plain)
    shared = share_storage(built)
    assert pool_bytes(shared) <= pool_bytes(built)
    arena = ArenaExecutor(built)
    assert arena.arena_bytes <= pool_bytes(shared)
    assert arena.arena_bytes >= arena.plan.lower_bound_bytes >= peak_bytes(graph_of(built).graph)
    for executor in (graph_executor_of(built), graph_executor_of(shared), arena):
        for a, b in zip(expected, outputs(executor, values), strict=True):
            np.testing.assert_array_equal(a, b)


def test_exported_storage_loads_in_a_stock_runtime(tmp_path: object) -> None:
    mod = module("randwire-8")
    with context():
        built = share_storage(relay.build(SerenitySchedule()(mod), "llvm"))
    path = f"{tmp_path}/net.so"
    built.export_library(path)
    loaded = tvm.runtime.load_module(path)
    assert graph_of(loaded).storage_ids == graph_of(built).storage_ids
    values = inputs(mod)
    expected = outputs(graph_executor_of(built), values)
    arena = ArenaExecutor(loaded)
    np.testing.assert_array_equal(outputs(graph_executor_of(loaded), values), expected)
    np.testing.assert_array_equal(outputs(arena, values), expected)
    assert arena.benchmark(tvm.cpu(), repeat=2, number=1).mean > 0


def test_execution_order() -> None:
    """The kernels that really ran, recorded from within, are those of the order asked for."""
    mod = joined("NCHW", False)
    with recorded_calls() as calls:
        lowered = fused(mod, "llvm")
        given = read_function(lowered["main"]).graph
        ordered, found = schedule_module(lowered, "llvm", "kahn", executor="aot")
        built = relay.build(ordered, "llvm")
        values = inputs(mod)
        outputs(graph_executor_of(built), values)
        ran, calls[:] = list(calls), []
        outputs(ArenaExecutor(built), values)
    assert calls == ran == graph_of(built).calls
    place = {op: i for i, op in enumerate(found.order)} | {-1: -1}
    wanted = [[place[m] for m in made] for made in map(dataflow(given).__getitem__, found.order)]
    assert dataflow(graph_of(built).graph) == wanted
    assert found.order != tuple(sorted(found.order))
