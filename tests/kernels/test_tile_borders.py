"""Tiles at the ends of rows: which columns read outside of the image, and results as without."""

from typing import Any

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

tvm = pytest.importorskip("tvm")

from tvm import s_tir  # noqa: E402

from tests.kernels.test_tiles import assert_same  # noqa: E402
from tvm_serenity import compat  # noqa: E402
from tvm_serenity.kernels.lean import inline_stages, lean  # noqa: E402
from tvm_serenity.kernels.loops import blocks_of, is_reduction  # noqa: E402
from tvm_serenity.kernels.tile import WIDE  # noqa: E402
from tvm_serenity.kernels.tile_borders import MOST_BORDERS, inside, with_borders  # noqa: E402
from tvm_serenity.kernels.tile_ranges import AxisRange  # noqa: E402
from tvm_serenity.relax.lower import lowered  # noqa: E402

SHAPES = st.fixed_dictionaries(
    {
        "width": st.integers(1, 40),
        "size": st.sampled_from([1, 2, 3, 5]),
        "stride": st.integers(1, 3),
        "dilation": st.integers(1, 2),
        "padding": st.tuples(st.integers(0, 3), st.integers(0, 3)),
    }
)


def columns_of(width: int, size: int, stride: int, dilation: int, padding: tuple[int, int]) -> int:
    """The columns of the result; 0 where there are none."""
    return (width + sum(padding) - dilation * (size - 1) - 1) // stride + 1


def kernel_of(
    width: int, size: int, stride: int, dilation: int, padding: tuple[int, int], channels: int = 24
) -> Any:
    """The fused kernel of a convolution and a ReLU in NHWC."""
    from tvm import relax

    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, size, width, 5), "float32"))
    w = relax.Var("w", relax.TensorType((size, size, 5, channels), "float32"))
    with builder.function("main", [x, w]):
        with builder.dataflow():
            made = relax.op.nn.conv2d(
                x,
                w,
                strides=stride,
                padding=(1, padding[0], size, padding[1]),
                dilation=dilation,
                data_layout="NHWC",
                kernel_layout="HWIO",
            )
            made = builder.emit_output(relax.op.nn.relu(builder.emit(made)))
        builder.emit_func_output(made)
    functions = lowered(builder.get(), "llvm").functions.values()
    return next(f for f in functions if compat.is_prim_func(f))


def found_inside(kernel: Any) -> tuple[int, int]:
    """What is found of the kernel's columns."""
    schedule = s_tir.Schedule(tvm.IRModule({"main": kernel}))
    inline_stages(schedule)
    block = next(schedule.get(b) for b in blocks_of(schedule) if is_reduction(schedule, b))
    column = block.iter_vars[2]
    return inside(block, column.var, int(column.dom.extent))


@given(SHAPES)
@seed(0)
@settings(max_examples=60, deadline=None)
def test_columns_that_read_only_the_image_are_found(shape: dict[str, Any]) -> None:
    columns = columns_of(**shape)
    if (
        columns < 1
        or columns_of(**{**shape, "width": shape["size"], "padding": (1, shape["size"])}) < 1
    ):
        return

    def whole(column: int) -> bool:
        first = column * shape["stride"] - shape["padding"][0]
        last = first + shape["dilation"] * (shape["size"] - 1)
        return bool(first >= 0 and last < shape["width"])

    wanted = [c for c in range(columns) if whole(c)]
    first, end = found_inside(kernel_of(**shape))
    assert list(range(first, end)) == wanted


@pytest.mark.parametrize(
    ("width", "size", "stride", "dilation", "padding"),
    [(29, 3, 1, 1, (1, 1)), (14, 3, 2, 1, (0, 1)), (23, 5, 1, 2, (4, 4)), (7, 3, 1, 1, (1, 1))],
)
def test_results_are_the_same(
    width: int, size: int, stride: int, dilation: int, padding: tuple[int, int]
) -> None:
    kernel = kernel_of(width, size, stride, dilation, padding)
    assert_same(kernel, lean(kernel, WIDE))


@given(st.integers(1, 60), st.integers(1, 9), st.integers(0, 30), st.integers(0, 30))
@seed(0)
@settings(max_examples=200, deadline=None)
def test_borders_are_tiles_of_their_own(tiles: int, width: int, left: int, right: int) -> None:
    extent = tiles * width
    within = (min(left, extent), max(extent - right, 0))
    made = with_borders([AxisRange(0, extent, width)], within)
    assert [c for r in made for c in range(r.start, r.start + r.count)] == list(range(extent))
    assert sum(r.border for r in made) <= MOST_BORDERS
    if len(made) > 1:
        middle = [c for r in made if not r.border for c in range(r.start, r.start + r.count)]
        assert all(within[0] <= c < within[1] for c in middle)


def test_no_column_in_the_middle_is_asked_where_it_lies() -> None:
    made = lean(kernel_of(56, 3, 1, 1, (1, 1), channels=32), WIDE)
    assert made.script().count("T.unroll(T.int64(3))") == 2  # taps along the row, at both ends
