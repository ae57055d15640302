"""Modules as TVM's users write them: without dataflow blocks, with helpers, of bounded sizes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm
from tvm import relax

from tests.llvm import TARGET
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.passes import (
    SerenityPlanMemory,
    SerenityRewrite,
    SerenitySchedule,
    serenity_pipeline,
)
from tvm_serenity.relax.schedule import ARENA

WITHOUT_BLOCK = """
@I.ir_module
class WithoutBlock:
    @R.function
    def main(x: R.Tensor((1, 8), "float32")) -> R.Tensor((8,), "float32"):
        wide = R.tile(x, (64, 1))
        other = R.tile(x, (32, 1))
        narrow = R.sum(wide, axis=[0])
        small = R.sum(other, axis=[0])
        out = R.add(narrow, small)
        return out
"""
WITH_HELPER = """
@I.ir_module
class WithHelper:
    @R.function(private=True)
    def doubled(x: R.Tensor((1, 8), "float32")) -> R.Tensor((1, 8), "float32"):
        with R.dataflow():
            y = R.nn.relu(x)
            z = R.add(y, y)
            R.output(z)
        return z

    @R.function
    def main(x: R.Tensor((1, 8), "float32")) -> R.Tensor((8,), "float32"):
        cls = WithHelper
        with R.dataflow():
            h = cls.doubled(x)
            wide = R.tile(h, (64, 1))
            other = R.tile(x, (32, 1))
            narrow = R.sum(wide, axis=[0])
            small = R.sum(other, axis=[0])
            out = R.add(narrow, small)
            R.output(out)
        return out
"""


def bounded(most: int = 4) -> tvm.IRModule:
    """A convolution and a softmax, whose kernels of TVM need scratch, of up to ``most`` images."""
    n, builder = tvm.tirx.Var("n", "int64"), relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((n, 8, 8, 4), "float32"))
    weight = np.random.default_rng(0).standard_normal((3, 3, 4, 4)).astype("float32")
    layout = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
    with builder.function("main", [x], attrs={"tir_var_upper_bound": {"n": most}}):
        with builder.dataflow():
            made = relax.op.nn.conv2d(x, relax.const(weight), padding=1, **layout)
            made = builder.emit(relax.op.nn.relu(builder.emit(made)))
            out = builder.emit_output(relax.op.nn.softmax(made, axis=-1))
        builder.emit_func_output(out)
    module: tvm.IRModule = builder.get()
    return module


PASSES: dict[str, Callable[[], list[Any]]] = {
    "passes": lambda: [SerenitySchedule(), SerenityPlanMemory()],
    "readme": lambda: [SerenityRewrite(), SerenitySchedule(), SerenityPlanMemory()],
    "lowered": lambda: [relax.transform.LegalizeOps(), SerenitySchedule(), SerenityPlanMemory()],
    "pipeline": lambda: [serenity_pipeline()],
}


def results(executable: Any, *inputs: Any) -> Any:
    machine: Any = relax.VirtualMachine(executable, tvm.cpu())
    return machine["main"](*(tvm.runtime.tensor(array) for array in inputs)).numpy()


@pytest.mark.parametrize("passes", PASSES)
@pytest.mark.parametrize("text", [WITHOUT_BLOCK, WITH_HELPER])
def test_they_are_ordered_and_planned(text: str, passes: str) -> None:
    module = tvm.script.from_source(text)
    made = tvm.transform.Sequential(PASSES[passes]())(module)
    assert int(made["main"].attrs[ARENA]) <= 2048 + 3 * 32  # wide dies before other is made
    x = np.random.default_rng(1).standard_normal((1, 8)).astype("float32")
    expected = results(tvm.compile(module, TARGET), x)
    np.testing.assert_allclose(results(tvm.compile(made, TARGET), x), expected, rtol=1e-6)


@pytest.mark.parametrize("passes", PASSES)
def test_scratch_of_a_bounded_size_is_planned(passes: str) -> None:
    module = bounded()
    made = tvm.transform.Sequential(PASSES[passes]())(module)
    ours, stock = tvm.compile(made, TARGET), tvm.compile(module, TARGET)
    for count in (1, 3, 4):
        x = np.random.default_rng(count).standard_normal((count, 8, 8, 4)).astype("float32")
        np.testing.assert_allclose(results(ours, x), results(stock, x), rtol=1e-5)
    more = np.zeros((5, 8, 8, 4), "float32")
    with pytest.raises(ValueError, match="n is more than 4"):
        results(ours, more)


def test_scratch_without_a_largest_size_is_named() -> None:
    module = bounded()
    module["main"] = module["main"].without_attr("tir_var_upper_bound")
    with pytest.raises(UnsupportedError, match="tir_var_upper_bound"):
        tvm.transform.Sequential([SerenitySchedule(), SerenityPlanMemory()])(module)


def test_an_order_comes_before_the_arena() -> None:
    planned = SerenityPlanMemory()(SerenitySchedule()(tvm.script.from_source(WITHOUT_BLOCK)))
    with pytest.raises(UnsupportedError, match="run SerenitySchedule before SerenityPlanMemory"):
        SerenitySchedule()(planned)
