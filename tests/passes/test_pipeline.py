"""One way to kernels: what the pipeline refuses, and that all who need kernels get the same."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm
from tvm import relax

from tests.rows.nets import random_module
from tvm_serenity import compat
from tvm_serenity.errors import InputError
from tvm_serenity.frontends.relax import to_relax
from tvm_serenity.kernels.tile import SCALAR
from tvm_serenity.passes import SerenityQuantize
from tvm_serenity.relax.pipeline import Planning, Steps, planned, prepared
from tvm_serenity.relax.quantize import is_quantised
from tvm_serenity.relax.read import read_function
from tvm_serenity.relax.rewrite import rewrite_by
from tvm_serenity.rewrite import RewriteOptions as Rules
from tvm_serenity.runtime.pipeline import serenity_pipeline

HELLO = "models/tflm/hello_world_int8.tflite"


@pytest.fixture(scope="module")
def single(shared: Path) -> Any:
    """Return a module of integers alone, which round once."""
    module = to_relax(shared / HELLO, integers="single")
    assert not is_quantised(module)  # no operator tells how it rounds: the attribute does
    return module


def test_integers_keep_the_rounding_they_were_imported_with(single: Any) -> None:
    kept = prepared(single, target="llvm").integers
    tvm.ir.assert_structural_equal(kept, prepared(single, Steps(rounding="single")).integers)
    tvm.ir.assert_structural_equal(kept, single)


@pytest.mark.parametrize("rounding", ["tflite", "float"])
def test_another_rounding_is_refused_by_name(single: Any, rounding: str) -> None:
    said = f"rounding='{rounding}': the module was imported with integers rounded as 'single'"
    with pytest.raises(InputError, match=said):
        SerenityQuantize(rounding)(single)
    with pytest.raises(InputError, match=said):
        serenity_pipeline(rounding=rounding)(single)


def test_float_is_refused_for_a_module_of_integers(single: Any) -> None:
    with pytest.raises(InputError, match="quantized='off': the module was imported with integer"):
        prepared(single, Steps(quantized="off"))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"quantized": "maybe"}, "quantized='maybe': there are auto, off"),
        ({"rounding": "up"}, "rounding='up': there are auto, tflite, single, float"),
        ({"rows": True, "rewrite": "all"}, "rows and rewrite"),
        (
            {"rows": True, "layout": "given"},
            "layout='given': a split into rows needs channels last",
        ),
        ({"rewrite": "residual, rows", "layout": "given"}, "layout='given': rows are cut"),
    ],
)
def test_steps_that_mean_nothing_are_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Steps(**wrong)


def test_the_pipeline_is_prepared_and_planned() -> None:
    module = random_module(0, True)
    with tvm.target.Target("llvm"):
        made = prepared(module)
        apart = planned(made.kernels, Planning(), made.target)
        tvm.ir.assert_structural_equal(serenity_pipeline()(module), apart)


def test_rows_of_a_model_left_float_are_float() -> None:
    module = random_module(0, True)
    assert is_quantised(module)
    made = prepared(module, Steps(quantized="off", rewrite="rows", time_limit_s=0.2))
    assert made.rewriting is not None
    assert made.rewriting.rows is not None
    assert _has_floats(made.changed)
    made = prepared(module, Steps(rewrite="rows", time_limit_s=0.2))
    assert not _has_floats(made.changed)


def test_a_rule_that_can_split_nothing_says_why() -> None:
    module = prepared(random_module(0, True), Steps(rewrite="rows", time_limit_s=0.2)).changed
    made, done = rewrite_by(module, Rules("rows", time_limit_s=0.2), "llvm")
    assert made is module
    assert done.rows is None
    assert done.reason
    assert not done.changed


def test_what_changed_is_said() -> None:
    dense = _dense()
    assert not prepared(dense, Steps(rewrite="all")).is_changed
    assert prepared(random_module(0, True), Steps(rows=True, time_limit_s=0.2)).is_changed


def _dense() -> Any:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType([1, 8], "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            made = builder.emit_output(relax.op.nn.relu(x))
        builder.emit_func_output(made)
    return builder.get()


def test_a_step_can_be_disabled_by_its_name() -> None:
    module = random_module(0, True)
    with tvm.transform.PassContext(disabled_pass=["SerenityQuantize"]):
        assert is_quantised(prepared(module).integers)


def _has_floats(module: Any) -> bool:
    return any(
        isinstance(binding.var.ty, relax.TensorType) and str(binding.var.ty.dtype) == "float32"
        for block in module["main"].body.blocks
        for binding in block.bindings
    )


def test_the_reference_calls_what_the_kernels_do() -> None:
    """A transposed 1 x 1 image is a kernel of TVM's, and a view once it is lean."""
    builder, x = relax.BlockBuilder(), relax.Var("x", relax.TensorType((1, 8, 4, 4), "float32"))
    weights = relax.const(np.ones((8, 3), np.float32))
    with builder.function("main", [x]):
        with builder.dataflow():
            pooled = builder.emit(relax.op.nn.avg_pool2d(x, (4, 4)))
            turned = builder.emit(relax.op.permute_dims(pooled, [0, 2, 3, 1]))
            flat = builder.emit(relax.op.reshape(turned, (1, 8)))
            made = builder.emit_output(relax.op.matmul(flat, weights))
        builder.emit_func_output(made)
    ready = prepared(builder.get(), Steps(tiling=SCALAR), "llvm")
    called = [calls_of(mod) for mod in (ready.plain, ready.kernels, ready.reference)]
    assert called[2] == called[1] != called[0]
    ran = tvm.compile(ready.reference, target="llvm")
    given = np.arange(128, dtype=np.float32).reshape(1, 8, 4, 4)
    found = relax.VirtualMachine(ran, tvm.cpu())["main"](tvm.runtime.tensor(given)).numpy()
    assert np.array_equal(found, given.mean((2, 3)) @ np.ones((8, 3), np.float32))


def calls_of(mod: tvm.IRModule) -> list[str]:
    """Return the kernels that a module calls, "" for a view."""
    region = read_function(mod, workspace=False)
    calls = [compat.called_kernel(region.bindings[i].value) for i in region.run]
    return ["" if v is None else v.name_hint for v in calls]
