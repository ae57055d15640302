"""What the Relay passes refuse, and by which name."""

from importlib import import_module

import pytest

relay = pytest.importorskip("tvm.relay", reason="needs a TVM with Relay: make relay-test")

import numpy as np  # noqa: E402
import tvm  # noqa: E402

import tvm_serenity  # noqa: E402
from tests.relay.nets import Layers, context, graph_executor_of, inputs, outputs  # noqa: E402
from tvm_serenity.errors import InputError, MissingPartError, UnsupportedError  # noqa: E402
from tvm_serenity.passes.relay import SerenityRewrite, SerenitySchedule  # noqa: E402
from tvm_serenity.relay import ArenaExecutor  # noqa: E402
from tvm_serenity.relay.lower import fused  # noqa: E402
from tvm_serenity.relay.read import read_function  # noqa: E402


def test_relax_passes_need_another_tvm() -> None:
    with pytest.raises(MissingPartError, match=rf"TVM {tvm.__version__} is installed.*pip install"):
        tvm_serenity.LeanKernels  # noqa: B018
    with pytest.raises(MissingPartError, match=r"apache-tvm 0\.27"):
        import_module("tvm_serenity.passes.relax")


def test_the_passes_are_relay_passes() -> None:
    for name in ("SerenityRewrite", "SerenitySchedule"):
        assert getattr(tvm_serenity, name) is getattr(
            import_module("tvm_serenity.passes.relay"), name
        )


@pytest.mark.parametrize("make", [SerenityRewrite, SerenitySchedule])
def test_dynamic_shapes(make: type) -> None:
    x = relay.var("rows", shape=(relay.Any(), 4))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))
    with pytest.raises(UnsupportedError, match="'rows' has a dynamic shape"):
        make()(mod)


def test_control_flow() -> None:
    x = relay.var("x", shape=(4,))
    flag = relay.var("flag", shape=(), dtype="bool")
    body = relay.If(flag, relay.nn.relu(x), relay.negative(x))
    with pytest.raises(UnsupportedError, match="If"):
        SerenitySchedule()(tvm.IRModule.from_expr(relay.Function([x, flag], body)))


def test_other_modules_and_options() -> None:
    with pytest.raises(InputError, match="no function 'main'"):
        SerenitySchedule()(tvm.IRModule())
    x = relay.var("x", shape=(4,))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))
    with pytest.raises(InputError, match="executor='vm'"):
        SerenitySchedule(executor="vm")(mod)
    with pytest.raises(InputError, match="unknown rewrite rule 'fast'"):
        SerenityRewrite("fast")(mod)
    with pytest.raises(InputError, match="graph executor"):
        ArenaExecutor(mod)


def test_external_functions_are_ordered_as_they_are() -> None:
    """BYOC: a function of another code generator is one opaque op, and stays as it is."""
    to = Layers("NCHW", False)
    x = to.input(4, 4)
    y = relay.var("y", shape=(1, 8, 4, 4))
    outer = relay.Function([y], relay.negative(y))
    outer = outer.with_attr("Primitive", tvm.tir.IntImm("int32", 1))
    outer = outer.with_attr("Compiler", "elsewhere").with_attr("global_symbol", "elsewhere_0")
    negated = relay.Call(outer, [to.conv(x, 8)])
    mod = to.module(x, relay.add(to.conv(negated, 4), to.conv(x, 4)))
    with context():
        lowered = SerenitySchedule("llvm")(mod)
    kinds = [op.kind for op in read_function(lowered["main"]).graph.ops]
    assert kinds.count("elsewhere_0") == 1
    assert "negative" not in "".join(kinds)


def test_weights_as_params() -> None:
    x = relay.var("x", shape=(1, 4, 6, 6))
    w = relay.var("w", shape=(8, 4, 1, 1))
    mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.conv2d(x, w)))
    weights = {"w": np.random.default_rng(0).uniform(-1, 1, (8, 4, 1, 1)).astype("float32")}
    with context():
        plain = relay.build(mod, "llvm", params=weights)
        ordered = SerenitySchedule("llvm", params=weights)(SerenityRewrite(params=weights)(mod))
        built = relay.build(ordered, "llvm")
    assert [p.name_hint for p in ordered["main"].params] == ["x"]
    values = inputs(ordered)
    expected = outputs(graph_executor_of(plain), values)
    np.testing.assert_array_equal(outputs(graph_executor_of(built), values), expected)
    assert fused(ordered, "llvm")["main"].params
