"""Register tiles of float kernels: which vectors they are made of, with the same results."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

tvm = pytest.importorskip("tvm")

from tests.conformance.relax_forms import compiled, run_kernel  # noqa: E402
from tvm_serenity import compat  # noqa: E402
from tvm_serenity.kernels import tile, tile_ranges  # noqa: E402
from tvm_serenity.kernels.lean import lean  # noqa: E402
from tvm_serenity.kernels.tile import MCU, WIDE  # noqa: E402
from tvm_serenity.kernels.tile_ranges import (  # noqa: E402
    AxisRange,
    channel_ranges,
    column_ranges,
)
from tvm_serenity.relax.lower import lowered  # noqa: E402


def kernel_of(width: int, channels: int, groups: int = 1, prelu: bool = False) -> Any:
    """The fused kernel of a 3x3 convolution of ``width`` pixels a row, plain or with a PReLU."""
    from tvm import relax

    def typed(*shape: int) -> Any:
        return relax.TensorType(shape, "float32")

    builder = relax.BlockBuilder()
    x = relax.Var("x", typed(1, 5, width + 2, channels))
    w = relax.Var("w", typed(3, 3, channels // groups, channels))
    slope = relax.Var("slope", typed(channels))
    with builder.function("main", [x, w, slope]):
        with builder.dataflow():
            made = builder.emit(
                relax.op.nn.conv2d(x, w, groups=groups, data_layout="NHWC", kernel_layout="HWIO")
            )
            if prelu:
                low = builder.emit(relax.op.less(made, relax.const(0.0, "float32")))
                made = builder.emit(relax.op.where(low, relax.op.multiply(made, slope), made))
            made = builder.emit_output(made)
        builder.emit_func_output(made)
    kernels = [f for f in lowered(builder.get(), "llvm").functions.values() if _is_kernel(f)]
    assert len(kernels) == 1
    return kernels[0]


def _is_kernel(function: Any) -> bool:
    return bool(compat.is_prim_func(function))


def assert_same(kernel: Any, made: Any) -> None:
    """Find both forms of a kernel equal, bit by bit."""
    rng = np.random.default_rng(0)
    *given, result = (
        (tuple(compat.buffer_shape(p)), compat.buffer_dtype(p)) for p in kernel.params
    )
    arguments = [rng.standard_normal(shape).astype(dtype) for shape, dtype in given]
    library = compiled({"plain": kernel, "made": made})
    wanted, found = (
        run_kernel(library[name], arguments, [result], 0xA5)[0] for name in ("plain", "made")
    )
    assert np.ptp(wanted) > 0
    assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize(
    ("width", "channels", "groups", "prelu", "vectors", "columns"),
    [
        (14, 32, 1, True, [32], [7]),
        (13, 32, 1, True, [32], [13]),
        (13, 24, 1, False, [16, 8], [13]),
        (14, 32, 1, False, [32], [7]),
        (7, 24, 2, False, [8, 4, 8, 4], [7]),
        (7, 24, 2, True, [8, 4, 8, 4], [7]),
        (17, 40, 1, True, [32, 32, 8, 8], [6, 5]),
        (29, 35, 1, False, [32, 2], [6, 5]),
    ],
)
def test_tiles_are_of_vectors_to_their_end(
    width: int,
    channels: int,
    groups: int,
    prelu: bool,
    vectors: list[int],
    columns: list[int],
) -> None:
    kernel = kernel_of(width, channels, groups, prelu)
    made = lean(kernel, WIDE)
    script = made.script()
    for size in vectors:  # begin, sum up, finish
        assert script.count(f"T.vectorized(T.int64({size}))") >= 3 * vectors.count(size)
    for size in columns:
        assert f"T.unroll(T.int64({size}))" in script
    assert_same(kernel, made)


@given(st.integers(1, 300), st.sampled_from([1, 2, 3, 4]), st.sampled_from([16, 32]))
@seed(0)
@settings(max_examples=200, deadline=None)
def test_ranges_make_every_channel_and_column_once(size: int, groups: int, most: int) -> None:
    def assert_whole(ranges: list[AxisRange], extent: int) -> None:
        made = [at for r in ranges for at in range(r.start, r.start + r.count)]
        assert made == list(range(extent))
        assert all(r.count % r.width == 0 and r.width <= most for r in ranges)

    channels = channel_ranges(size * groups, size if groups > 1 else 0, most)
    assert_whole(channels, size * groups)
    assert all(
        r.start // size == (r.start + r.width - 1) // size and r.width & (r.width - 1) == 0
        for r in channels
    )
    assert_whole(column_ranges(size, 7, WIDE.widest(size), 2), size)


def test_a_range_left_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tile_ranges.channel_ranges
    monkeypatch.setattr(tile, "channel_ranges", lambda *sizes: whole(*sizes)[:-1])
    kernel = kernel_of(13, 56)
    with pytest.raises(AssertionError):
        assert_same(kernel, lean(kernel, WIDE))


def test_cores_without_vectors_store_a_plain_sum_as_it_is() -> None:
    kernel = kernel_of(14, 32)
    made = lean(kernel, MCU)
    assert "T.unroll" not in made.script()
    assert_same(kernel, made)
