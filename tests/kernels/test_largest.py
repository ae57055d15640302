"""The largest elements along an axis, against numpy's stable sort; firmware names what it lacks."""

from typing import Any

import numpy as np
import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax, te

from tvm_serenity.firmware.lower.statements import _called
from tvm_serenity.kernels.largest import largest
from tvm_serenity.relax.lower import lowered


def compiled(kernel: tvm.tirx.PrimFunc) -> Any:
    return tvm.compile(kernel.with_attr("global_symbol", "main"), "llvm")


def sorted_places(x: np.ndarray, count: int, axis: int, smallest: bool) -> np.ndarray:
    key = x.astype(np.float64)
    return np.argsort(key if smallest else -key, axis, kind="stable").take(range(count), axis)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(data=st.data())
def test_as_a_stable_sort_says(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    axis = data.draw(st.integers(0, len(shape) - 1))
    count = data.draw(st.integers(1, shape[axis]))
    dtype = data.draw(st.sampled_from(["float32", "int8", "int16", "int32", "int64", "uint8"]))
    index, smallest = data.draw(st.sampled_from(["int32", "int64"])), data.draw(st.booleans())
    kernel = compiled(largest(shape, dtype, count, axis, index, smallest))
    x = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, 5, shape).astype(dtype)
    made = (*shape[:axis], count, *shape[axis + 1 :])
    held = [tvm.runtime.tensor(a) for a in (x, np.zeros(made, dtype), np.full(made, 99, index))]
    kernel["main"](*held)
    places = sorted_places(x, count, axis, smallest)
    np.testing.assert_array_equal(held[2].numpy(), places)
    np.testing.assert_array_equal(held[1].numpy(), np.take_along_axis(x, places, axis))


def test_what_is_no_number_reads_nothing_outside() -> None:
    kernel = compiled(largest((4,), "float32", 3, 0))
    x = np.full(4, np.nan, np.float32)
    held = [tvm.runtime.tensor(a) for a in (x, np.zeros(3, np.float32), np.full(3, 99, np.int32))]
    kernel["main"](*held)
    assert ((held[2].numpy() >= 0) & (held[2].numpy() < 4)).all()


@pytest.mark.parametrize("kind", ["both", "values", "indices"])
def test_a_module_calls_no_function_of_the_runtime(kind: str) -> None:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((3, 7), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            made = builder.emit_output(relax.op.topk(x, 2, 1, kind))
        builder.emit_func_output(made)
    text = lowered(builder.get(), "llvm").script()
    assert "contrib.sort" not in text
    assert "topk" in text


def test_calls_of_the_runtime_are_named() -> None:
    x = te.placeholder((4,), "float32", "x")
    call = tvm.tirx.call_packed("tvm.contrib.sort.topk", x(0))
    assert _called(call) == "a call of 'tvm.contrib.sort.topk'"
