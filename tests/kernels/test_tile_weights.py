"""Weights in the order of tiles: the same results, each constant stored once."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

tvm = pytest.importorskip("tvm")

from tvm import relax  # noqa: E402

from tests.conformance.relax_forms import compiled, run_kernel  # noqa: E402
from tvm_serenity import compat  # noqa: E402
from tvm_serenity.kernels import tile_weights  # noqa: E402
from tvm_serenity.kernels.lean import lean  # noqa: E402
from tvm_serenity.kernels.tile import HOST, MCU, WIDE, Tiling  # noqa: E402
from tvm_serenity.kernels.tile_weights import InTiles, in_tiles  # noqa: E402
from tvm_serenity.relax.lower import lowered  # noqa: E402
from tvm_serenity.relax.pipeline import Steps, prepared  # noqa: E402
from tvm_serenity.runtime.vm import run  # noqa: E402
from tvm_serenity.tvm_targets import native  # noqa: E402

AVX2 = tvm.target.Target({"kind": "llvm", "mcpu": "x86-64-v3"})


def network(shape: tuple[int, ...], weights: tuple[int, ...], calls: int = 1) -> Any:
    """Layers of random numbers in a row: convolutions (NHWC) or matmuls that share their weights.

    With ``calls`` above one, results must be of the shape of inputs.
    """
    rng = np.random.default_rng(0)
    weight = relax.const(rng.standard_normal(weights).astype("float32"), "float32")
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(shape, "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            made: Any = x
            for _ in range(calls):
                made = builder.emit(relax.op.nn.relu(_layer(made, weight, weights)))
            made = builder.emit_output(made)
        builder.emit_func_output(made)
    return builder.get()


def _layer(x: Any, weight: Any, shape: tuple[int, ...]) -> Any:
    if len(shape) == 2:
        return relax.op.matmul(x, weight)
    layouts = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
    return relax.op.nn.conv2d(x, weight, padding=shape[0] // 2, **layouts)


def kernel_of(module: Any) -> Any:
    kernels = [f for f in lowered(module, "llvm").functions.values() if compat.is_prim_func(f)]
    assert len(kernels) == 1
    return kernels[0]


def assert_same(kernel: Any, form: InTiles, tiling: Tiling) -> None:
    """Find the lean kernel of weights in tiles, and the form itself, equal to the plain kernel."""
    rng = np.random.default_rng(1)
    *given_, result = (
        (tuple(compat.buffer_shape(p)), compat.buffer_dtype(p)) for p in kernel.params
    )
    arguments = [rng.standard_normal(shape).astype(dtype) for shape, dtype in given_]
    library = compiled({"plain": kernel, "form": form.kernel, "lean": lean(form.kernel, tiling)})
    wanted = run_kernel(library["plain"], arguments, [result], 0xA5)[0]
    arguments[form.index] = form.stored(arguments[form.index])
    assert np.ptp(wanted) > 0
    for name in ("form", "lean"):
        found = run_kernel(library[name], arguments, [result], 0xA5)[0]
        assert found.tobytes() == wanted.tobytes()


@given(
    st.sampled_from([1, 3, 5]),
    st.integers(1, 9),
    st.integers(1, 20),
    st.sampled_from([8, 16, 24, 32, 64, 80, 96, 192, 256]),
    st.sampled_from([HOST, WIDE]),
    st.booleans(),
)
@seed(0)
@settings(max_examples=25, deadline=None)
def test_sums_stay_the_same_bit_for_bit(
    window: int, width: int, inputs: int, channels: int, tiling: Tiling, dense: bool
) -> None:
    shape = (width, inputs) if dense else (1, 3, width, inputs)
    weights = (inputs, channels) if dense else (window, window, inputs, channels)
    kernel = kernel_of(network(shape, weights))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tile_weights, "NEAR_BYTES", 0)
        form = in_tiles(kernel, tiling)
    if form is not None:
        assert channels % form.width == 0
        assert f"T.vectorized(T.int64({form.width}))" in lean(form.kernel, tiling).script()
        assert_same(kernel, form, tiling)


@pytest.mark.parametrize(
    ("channels", "tiling", "width"), [(256, WIDE, 32), (256, HOST, 16), (8, WIDE, 0), (40, WIDE, 0)]
)
def test_weights_of_many_equal_tiles_are_stored_so(
    channels: int, tiling: Tiling, width: int
) -> None:
    form = in_tiles(kernel_of(network((1, 7, 7, 128), (3, 3, 128, channels))), tiling)
    assert (form.width if form else 0) == width
    assert in_tiles(kernel_of(network((1, 7, 7, 2), (3, 3, 2, channels))), tiling) is None
    assert in_tiles(kernel_of(network((1, 7, 7, 128), (3, 3, 128, channels))), MCU) is None


def test_weights_in_another_order_are_found() -> None:
    kernel = kernel_of(network((1, 7, 7, 64), (3, 3, 64, 128)))
    form = in_tiles(kernel, WIDE)
    assert form is not None
    wrong = InTiles(form.kernel, form.index, form.width // 2)
    with pytest.raises((AssertionError, ValueError)):
        assert_same(kernel, wrong, WIDE)


def constants(module: Any) -> list[tuple[int, tuple[int, ...]]]:
    """Addresses and shapes of the constants that kernels get."""
    values = [b.value for block in module["main"].body.blocks for b in block.bindings]
    given_ = [a for v in values if compat.is_call(v) for a in compat.kernel_arguments(v)]
    literals = [a for a in given_ if compat.is_constant(a)]
    return [(compat.constant_address(a), compat.constant_array(a).shape) for a in literals]


def test_layers_that_share_weights_still_share_them() -> None:
    module = network((1, 5, 5, 128), (3, 3, 128, 128), calls=3)
    found = constants(prepared(module, Steps(layout="given"), AVX2).plain)
    assert {shape for _, shape in found} == {(8, 3, 3, 128, 16)}
    assert (len(found), len(dict.fromkeys(found))) == (3, 1)
    portable = constants(prepared(module, Steps(layout="given"), "llvm").plain)
    assert {shape for _, shape in portable} == {(3, 3, 128, 128)}


def test_weights_that_are_given_stay_as_they_are() -> None:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((9, 128), "float32"))
    w = relax.Var("w", relax.TensorType((128, 256), "float32"))
    literal = relax.const(np.ones((256, 128), "float32"), "float32")
    with builder.function("main", [x, w]):
        with builder.dataflow():
            first = builder.emit(relax.op.matmul(x, w))
            second = builder.emit(relax.op.matmul(first, literal))
            made = builder.emit_output(relax.op.matmul(second, w))
        builder.emit_func_output(made)
    plain = prepared(builder.get(), Steps(), AVX2).plain
    assert [shape for _, shape in constants(plain)] == [(8, 256, 16)]


def test_weights_that_are_read_in_two_ways_are_stored_once() -> None:
    weight = relax.const(np.ones((128, 128), "float32"), "float32")
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((128, 128), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            first = builder.emit(relax.op.matmul(x, weight))
            second = builder.emit(relax.op.nn.relu(relax.op.add(x, weight)))
            made = builder.emit_output(relax.op.matmul(first, second))
        builder.emit_func_output(made)
    plain = prepared(builder.get(), Steps(), AVX2).plain
    found = constants(plain)
    assert (len(found), len(set(found))) == (2, 1)
    assert {shape for _, shape in found} == {(128, 128)}


@pytest.mark.parametrize("threads", [1, 2])
def test_networks_compute_the_same(threads: int) -> None:
    module = network((1, 9, 9, 64), (3, 3, 64, 64), calls=2)
    x = np.random.default_rng(2).integers(-3, 4, (1, 9, 9, 64)).astype("float32")
    results = []
    for count, target in ((threads, native()), (1, tvm.target.Target("llvm"))):
        made = prepared(module, Steps(layout="given", threads=count), target).kernels
        results.append(run(tvm.compile(made, target), [x]).outputs[0])
    np.testing.assert_allclose(results[0], results[1], rtol=1e-4, atol=1e-3)
