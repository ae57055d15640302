"""The int8 kernels as patterns: what is partitioned, computed, and left to others."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.relax import op
from tvm.relax.backend.pattern_registry import get_patterns_with_prefix
from tvm.relax.dpl import is_op, wildcard
from tvm.relax.expr_functor import PyExprMutator, mutator

from tests.cases import sampled
from tests.llvm import TARGET
from tvm_serenity.compat import call_like
from tvm_serenity.passes import (
    SerenityCortexM,
    SerenityPlanMemory,
    SerenityQuantize,
    SerenitySchedule,
    partition_for_cortex_m,
)
from tvm_serenity.relax import cortex_m
from tvm_serenity.relax.quantize import kept_float, quantized_module
from tvm_serenity.runtime.vm import run
from tvm_serenity.validation.network_inputs import random_inputs


class Net:
    """A module of stored tensors, written region by region."""

    def __init__(self, seed: int, *shape: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.builder = relax.BlockBuilder()
        self.x = relax.Var("x", relax.TensorType(shape, "int8"))
        self.params: dict[Any, tuple[float, int]] = {self.x: (0.05, 3)}

    def weight(self, *shape: int, scale: float = 0.01) -> Any:
        stored = relax.const(self.rng.integers(-127, 128, shape).astype("int8"))
        return self.emit(op.dequantize(stored, *_affine(scale, 0), out_dtype="float32"))

    def bias(self, *shape: int) -> Any:
        return relax.const(self.rng.uniform(-1, 1, shape).astype("float32"))

    def real(self, stored: Any) -> Any:
        return self.emit(op.dequantize(stored, *_affine(*self.params[stored])))

    def stored(self, real: Any, scale: float, zero: int) -> Any:
        made = self.emit(op.quantize(self.emit(real), *_affine(scale, zero), out_dtype="int8"))
        self.params[made] = (scale, zero)
        return made

    def emit(self, call: Any) -> Any:
        return self.builder.emit(call)

    def module(self, write: Callable[["Net"], Any]) -> Any:
        with self.builder.function("main", [self.x]):
            with self.builder.dataflow():
                result = self.builder.emit_output(write(self))
            self.builder.emit_func_output(result)
        return self.builder.get()


def _affine(scale: float, zero: int) -> tuple[Any, Any]:
    return relax.const(np.float32(scale)), relax.const(np.int8(zero))


def residual(net: Net) -> Any:
    """Convolutions, a sum that reads what a convolution reads too, pool, softmax."""
    layout = {"data_layout": "NHWC", "kernel_layout": "OHWI"}
    wide = op.nn.conv2d(net.real(net.x), net.weight(8, 3, 3, 4), padding=1, **layout)
    a = net.stored(op.nn.relu(net.emit(op.add(net.emit(wide), net.bias(8)))), 0.04, -128)
    shared = net.real(a)
    d = net.stored(op.nn.conv2d(shared, net.weight(8, 1, 1, 8), **layout), 0.1, 1)
    total = net.stored(op.clip(net.emit(op.add(net.real(d), shared)), -2.0, 5.0), 0.12, -4)
    pooled = net.stored(op.nn.avg_pool2d(net.real(total), (2, 2), (2, 2), layout="NHWC"), 0.12, -4)
    return net.stored(op.nn.softmax(net.real(pooled), axis=3), 1 / 256, -128)


def first_channels(net: Net) -> Any:
    """NCHW, groups, a bias a channel, a join, a dense layer, a sigmoid."""
    one = op.nn.conv2d(net.real(net.x), net.weight(4, 1, 3, 3), padding=1, groups=4)
    a = net.stored(op.add(net.emit(one), net.bias(1, 4, 1, 1)), 0.06, 2)
    b = net.stored(op.nn.conv2d(net.real(net.x), net.weight(2, 4, 1, 1)), 0.05, -7)
    both = net.stored(op.concat([net.real(a), net.real(b)], axis=1), 0.06, 2)
    flat = net.stored(op.mean(net.real(both), [2, 3]), 0.03, 0)
    dense = net.stored(op.add(net.emit(op.matmul(net.real(flat), net.weight(6, 5))), net.bias(5)),
                       0.05, 4)  # fmt: skip
    return net.stored(op.sigmoid(net.real(dense)), 1 / 256, -128)


NETS: dict[str, tuple[Any, tuple[int, ...], list[str]]] = {
    "residual": (residual, (1, 8, 8, 4), ["add", "avg_pool2d", "conv2d", "conv2d", "softmax"]),
    "first channels": (
        first_channels,
        (1, 4, 8, 8),
        ["concatenate", "conv2d", "conv2d", "dense", "mean", "sigmoid"],
    ),
}


def composites(module: Any) -> list[str]:
    held = [str((f.attrs or {}).get("Composite", "")) for f in module.functions.values()]
    return sorted(name.removeprefix("cortex_m.") for name in held if name)


def outputs(module: Any, inputs: Any) -> Any:
    return run(tvm.compile(module, TARGET), inputs, poison=0xA5).outputs


@pytest.mark.parametrize(("name", "seed"), sampled(product(NETS, [0, 1]), 2))
def test_a_quantised_module_is_partitioned_and_computed_in_integers(name: str, seed: int) -> None:
    write, shape, kinds = NETS[name]
    module = Net(seed, *shape).module(write)
    parts = partition_for_cortex_m(module)
    assert composites(parts) == kinds
    inputs = random_inputs(module, seed)
    real, as_parts = outputs(module, inputs), outputs(parts, inputs)
    assert all(np.array_equal(a, b) for a, b in zip(real, as_parts, strict=True))
    made = SerenityCortexM(rounding="float")(parts)
    assert not composites(made)
    assert not kept_float(SerenityQuantize(rounding="float")(made))
    ours, whole = outputs(made, inputs), outputs(SerenityQuantize(rounding="float")(module), inputs)
    assert all(np.array_equal(a, b) for a, b in zip(ours, whole, strict=True))
    planned = SerenityPlanMemory()(SerenitySchedule()(made))
    assert all(np.array_equal(a, b) for a, b in zip(ours, outputs(planned, inputs), strict=True))


@pytest.mark.parametrize("name", NETS)
def test_each_kernel_is_within_a_step_of_its_function_in_float(name: str) -> None:
    write, shape, kinds = NETS[name]
    parts = partition_for_cortex_m(Net(3, *shape).module(write))
    compared = 0
    for function in parts.functions.values():
        if "Composite" not in (function.attrs or {}):
            continue
        bare = relax.Function(function.params, function.body, function.ret_ty)
        real = tvm.IRModule({"main": bare.with_attr("global_symbol", "main")})
        inputs = random_inputs(real, 5)
        made = SerenityCortexM(rounding="float")(called(function))
        for a, b in zip(outputs(real, inputs), outputs(made, inputs), strict=True):
            assert np.abs(a.astype(int) - b.astype(int)).max() <= 1
        compared += 1
    assert compared == len(kinds)


def called(function: Any) -> Any:
    """A module whose ``main`` calls a function as partitioning leaves it."""
    builder = relax.BlockBuilder()
    name = builder.add_func(function, "part")
    params = [relax.Var(p.name, p.ty) for p in function.params]
    with builder.function("main", params):
        with builder.dataflow():
            out = builder.emit_output(relax.Call(name, params))
        builder.emit_func_output(out)
    return builder.get()


def test_a_region_without_a_kernel_is_left_to_others() -> None:
    def write(net: Net) -> Any:
        a = net.stored(op.nn.softmax(net.emit(op.exp(net.real(net.x))), axis=1), 1 / 256, -128)
        return net.emit(op.cos(net.real(a)))

    module = Net(0, 1, 8).module(write)
    parts = partition_for_cortex_m(module)
    assert composites(parts) == []
    fuse = relax.transform.FuseOpsByPattern([("npu.cos", is_op("relax.cos")(wildcard()))])
    assert composites(SerenityCortexM()(fuse(parts))) == ["npu.cos"]


def test_other_backends_come_before_or_after() -> None:
    """The softmax goes to another backend, the rest to kernels."""
    write, shape, kinds = NETS["residual"]
    module = Net(2, *shape).module(write)
    inputs = random_inputs(module, 0)
    softmax = is_op("relax.nn.softmax")(wildcard())
    fuse = relax.transform.FuseOpsByPattern([("npu.softmax", softmax)])
    parts = partition_for_cortex_m(fuse(module))
    assert composites(parts) == sorted([*(k for k in kinds if k != "softmax"), "npu.softmax"])
    for a, b in zip(outputs(module, inputs), outputs(parts, inputs), strict=True):
        assert np.array_equal(a, b)
    assert composites(SerenityCortexM(rounding="float")(parts)) == ["npu.softmax"]
    assert composites(fuse(partition_for_cortex_m(module))) == kinds


def test_a_module_without_stored_tensors_is_returned_as_it_is() -> None:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 8), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            out = builder.emit_output(op.exp(x))
        builder.emit_func_output(out)
    module = builder.get()
    assert partition_for_cortex_m(module) is module


def test_the_patterns_are_in_the_registry() -> None:
    partition_for_cortex_m(Net(0, 1, 8, 8, 4).module(residual))
    names = {p.name.removeprefix("cortex_m.") for p in get_patterns_with_prefix("cortex_m.")}
    assert {kind for _, _, kinds in NETS.values() for kind in kinds} <= names


@mutator
class Swapped(PyExprMutator):  # type: ignore[misc]
    """Gives kernels of two tensors of one type each other's."""

    def visit_call_(self, call: relax.Call) -> Any:
        call = super().visit_call_(call)
        given = call.args[1] if len(call.args) > 1 else None
        if not isinstance(given, relax.Tuple) or len(given.fields) != 2:
            return call
        one, two = given.fields
        alike = str(one.ty) == str(two.ty)
        return call_like(call, [call.args[0], relax.Tuple([two, one])]) if alike else call


def test_kernels_with_their_tensors_swapped_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A seeded fault."""

    def wrong(module: Any, *arguments: Any) -> Any:
        made = quantized_module(module, *arguments)
        made["main"] = Swapped().visit_expr(made["main"])
        return made

    write, shape, _ = NETS["residual"]
    module = Net(0, *shape).module(write)
    inputs = random_inputs(module, 0)
    parts = partition_for_cortex_m(module)
    good = outputs(SerenityCortexM(rounding="float")(parts), inputs)
    monkeypatch.setattr(cortex_m, "quantized_module", wrong)
    bad = outputs(SerenityCortexM(rounding="float")(parts), inputs)
    assert any(not np.array_equal(a, b) for a, b in zip(good, bad, strict=True))
