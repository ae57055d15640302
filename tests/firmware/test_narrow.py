"""Constants in fewer bytes: they stand for the very same floats, and kernels widen them so."""

from typing import Any

import numpy as np
import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import te, tirx

from tvm_serenity.firmware.lower.narrow import Narrow, narrow, narrow_constants
from tvm_serenity.firmware.lower.widen import widening
from tvm_serenity.kernels.build import prim_func

SHAPE = (6, 5, 12)
AXES = st.sampled_from((-1, 0, 1, 2))


def widened(found: Narrow) -> Any:
    """Return the floats that a constant stands for, in numpy."""
    if found.scales is None:
        return found.stored.view(np.float16).astype(np.float32)
    spread = found.scales
    if found.axis >= 0:
        spread = spread.reshape([-1 if a == found.axis else 1 for a in range(len(SHAPE))])
    return found.stored.astype(np.float32) * spread


def through_a_kernel(array: Any, found: Narrow) -> Any:
    """Return the floats that a kernel loads."""
    dtype = str(array.dtype)
    x, zero = te.placeholder(array.shape, dtype, "x"), tirx.const(0, dtype)
    plain = prim_func([x, te.compute(array.shape, lambda *at: x(*at) + zero, "y")])
    kernel = widening(plain, {0: found.form}).with_attr("global_symbol", "main")
    built = tvm.compile(tvm.IRModule({"main": kernel}), target="llvm")
    made = tvm.runtime.tensor(np.zeros_like(array))
    built["main"](*[tvm.runtime.tensor(a) for a in found.arrays], made)
    return made.numpy()


def drawn(seed: int, axis: int) -> Any:
    """Return integers of 8 bits times scales, one for each index of an axis."""
    rng = np.random.default_rng(seed)
    stored = rng.integers(-127, 128, SHAPE).astype(np.float32)
    extents = [SHAPE[axis] if a == axis else 1 for a in range(len(SHAPE))]
    scales = np.exp(rng.uniform(-12, 2, extents)).astype(np.float32)
    return stored * scales


@settings(max_examples=40, derandomize=True, deadline=None)
@given(st.integers(0, 2**20), AXES)
def test_integers_and_scales_are_found_again(seed: int, axis: int) -> None:
    array = drawn(seed, axis)
    found = narrow(array)
    assert found is not None
    assert found.stored.dtype == np.int8
    assert np.array_equal(widened(found), array)


@settings(max_examples=40, derandomize=True, deadline=None)
@given(st.integers(0, 2**20), st.sampled_from((1e-7, 1e-5, 1.0, 3e4)))
def test_halves_are_found_again(seed: int, size: float) -> None:
    rng = np.random.default_rng(seed)
    array = rng.uniform(-size, size, SHAPE).astype(np.float16).astype(np.float32)
    found = narrow(array)
    assert found is not None
    assert np.array_equal(widened(found).view(np.uint32), array.view(np.uint32))


@pytest.mark.parametrize("axis", [-1, 0, 1, 2])
def test_kernels_widen_integers(axis: int) -> None:
    array = drawn(7, axis)
    found = narrow(array)
    assert found is not None
    assert found.axis == axis
    assert np.array_equal(through_a_kernel(array, found), array)


def test_kernels_widen_every_half() -> None:
    bits = np.arange(1 << 16, dtype=np.uint16)
    array = bits.view(np.float16)[np.isfinite(bits.view(np.float16))].astype(np.float32)
    found = narrow(array)
    assert found is not None
    assert found.stored.dtype == np.uint16
    made = through_a_kernel(array, found)
    assert np.array_equal(made.view(np.uint32)[array != 0], array.view(np.uint32)[array != 0])
    assert not made[array == 0].any()


@pytest.mark.parametrize("shape", [(3, 5, 20), (7, 9, 5), (16, 16)])
def test_kernels_read_integers_of_4_bits(shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(4).integers(-8, 8, shape).astype(np.int8)
    found = narrow(array)
    assert found is not None
    assert found.stored.nbytes == -(-array.size // 2)
    assert np.array_equal(through_a_kernel(array, found), array)
    array[0, 1] = 8
    assert narrow(array) is None


@pytest.mark.parametrize("spoilt", [np.inf, np.nan, 1.0000001, 7e4])
def test_a_value_that_does_not_fit_keeps_its_array(spoilt: float) -> None:
    rng = np.random.default_rng(3)
    array = rng.standard_normal(SHAPE).astype(np.float16).astype(np.float32)
    assert narrow(array) is not None
    array[1, 2, 3] = spoilt
    assert narrow(array) is None


def test_small_and_full_floats_stay() -> None:
    rng = np.random.default_rng(5)
    assert narrow(np.zeros(16, np.float32)) is None
    assert narrow(rng.standard_normal(SHAPE).astype(np.float32)) is None


def test_calls_of_a_kernel_agree() -> None:
    rng = np.random.default_rng(9)
    steps, halves = drawn(1, -1), rng.standard_normal(SHAPE).astype(np.float16).astype(np.float32)
    calls = {
        0: ("a", [steps, None]),
        1: ("a", [halves, None]),
        2: ("b", [steps]),
        3: ("b", [steps]),
    }
    found = narrow_constants(calls)
    assert found[0] == found[1] == {}
    assert [found[i][0].form for i in (2, 3)] == [("int8", -1)] * 2
