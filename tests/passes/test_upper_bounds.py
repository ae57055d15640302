"""Symbolic sizes: planned at their largest values, run at others."""

from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.relax import op

from tests.llvm import TARGET
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.memory import peak_bytes
from tvm_serenity.passes import LeanKernels, SerenityPlanMemory, SerenitySchedule
from tvm_serenity.relax.extents import UPPER_BOUNDS, largest_shape
from tvm_serenity.relax.read import read_function
from tvm_serenity.relax.schedule import ARENA
from tvm_serenity.runtime.vm import compare, run

LARGEST = 8


def network(bounds: dict[str, int] | None) -> Any:
    """Three branches of wide images, of a batch that is a symbol."""
    rng = np.random.default_rng(0)

    def weight(*shape: int) -> Any:
        return relax.const(rng.uniform(-1, 1, shape).astype("float32"))

    batch = tvm.tirx.Var("n", "int64")
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((batch, 8, 8, 8), "float32"))
    attrs = {} if bounds is None else {UPPER_BOUNDS: bounds}
    with builder.function("main", [x], attrs=attrs):
        with builder.dataflow():
            wide = [
                builder.emit(op.nn.relu(op.nn.conv2d(x, weight(32, 8, k, k), padding=k // 2)))
                for k in (1, 3, 1)
            ]
            thin = [builder.emit(op.nn.conv2d(w, weight(4, 32, 1, 1))) for w in wide]
            whole = builder.emit(op.reshape(op.concat(thin, 1), (batch, 12 * 64)))
            result = builder.emit_output(op.matmul(whole, weight(12 * 64, 5)))
        builder.emit_func_output(result)
    return builder.get()


def inputs(batch: int) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(batch)
    return [rng.uniform(-1, 1, (batch, 8, 8, 8)).astype("float32")]


@pytest.fixture(scope="module")
def lean() -> Any:
    return LeanKernels()(network({"n": LARGEST}))


def test_one_plan_runs_at_every_size(lean: Any) -> None:
    given = tvm.compile(lean, TARGET)
    planned = SerenityPlanMemory()(SerenitySchedule()(lean))
    ours = tvm.compile(planned, TARGET)
    arena = int(planned["main"].attrs[ARENA])
    assert peak_bytes(read_function(lean).graph) > arena
    for batch in (LARGEST, 3, 1):
        expected, found = run(given, inputs(batch)), run(ours, inputs(batch), poison=0xA5)
        assert compare(expected.outputs, found.outputs)["identical"]
        assert found.storages == (arena, batch * 5 * 4)


def test_the_pipeline_takes_them() -> None:
    module = network({"n": LARGEST})
    pipeline = relax.get_pipeline("serenity")
    ours = tvm.compile(module, TARGET, relax_pipeline=pipeline)
    for batch in (2, LARGEST):
        expected = run(tvm.compile(module, TARGET), inputs(batch)).outputs
        found = run(ours, inputs(batch)).outputs
        assert np.allclose(expected[0], found[0], rtol=1e-5, atol=1e-5)


def test_a_larger_size_fails_before_tensors_overlap(lean: Any) -> None:
    ours = tvm.compile(SerenityPlanMemory()(lean), TARGET)
    with pytest.raises(ValueError, match="n is more than 8, for which memory is planned"):
        run(ours, inputs(LARGEST + 1))


@pytest.mark.parametrize("bounds", [None, {"m": 8}])
def test_sizes_without_a_bound_are_refused_by_name(bounds: dict[str, int] | None) -> None:
    with pytest.raises(UnsupportedError, match=rf"'x' has a symbolic shape .*{UPPER_BOUNDS}"):
        SerenitySchedule()(network(bounds))


def test_the_largest_of_a_formula() -> None:
    n, m = tvm.tirx.Var("n", "int64"), tvm.tirx.Var("m", "int64")
    ty = relax.TensorType((n * 2 + m, tvm.tirx.floordiv(n + 3, 4), 5), "float32")
    assert largest_shape(ty, "t", {"n": 9, "m": 7}) == (25, 3, 5)
    with pytest.raises(UnsupportedError, match="has an unknown rank"):
        largest_shape(relax.TensorType(dtype="float32"), "t", {})
