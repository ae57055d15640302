"""Kernels inside of an arena: which of their buffers may share memory."""

from typing import Any

import numpy as np
import pytest

tvm = pytest.importorskip("tvm")

from tvm import s_tir, te  # noqa: E402

from tvm_serenity.errors import UnsupportedError  # noqa: E402
from tvm_serenity.kernels.lean import lean  # noqa: E402
from tvm_serenity.kernels.nodes import parts  # noqa: E402
from tvm_serenity.kernels.shared_storage import in_place  # noqa: E402
from tvm_serenity.kernels.tile import HOST, SCALAR  # noqa: E402
from tvm_serenity.kernels.workspace import placeable, scratch_of, workspace_of  # noqa: E402

LENGTH = 64


def three_nests() -> Any:
    """Stages ``y``, ``t`` and ``x``, ``out``: ``t`` reads all of y while ``x`` is written."""
    last = LENGTH - 1
    a = te.placeholder((LENGTH,), "float32", "a")
    y = te.compute((LENGTH,), lambda i: a[i] + 1, "y")
    t = te.compute((LENGTH,), lambda i: y[last - i] + 1, "t")
    x = te.compute((LENGTH,), lambda i: t[i] * 2, "x")
    out = te.compute((LENGTH,), lambda i: x[last - i] + 1, "out")
    schedule = s_tir.Schedule(te.create_prim_func([a, out]))
    (loop,) = schedule.get_loops(schedule.get_sblock("t"))
    schedule.reverse_compute_at(schedule.get_sblock("x"), loop)
    module = s_tir.transform.PlanAndUpdateBufferAllocationLocation()(schedule.mod)
    return module["main"]


def test_buffers_of_one_loop_do_not_share_memory() -> None:
    kernel = three_nests()
    names = [b.name for b in scratch_of(kernel).buffers]
    assert names == ["y", "x"]  # t lies inside of the loop
    assert workspace_of(kernel) == 2 * 4 * LENGTH
    placed = placeable(kernel).with_attr("global_symbol", "main")
    run = tvm.compile(placed, "llvm")["main"]
    given = np.arange(LENGTH, dtype="float32")
    made, scratch = np.full(LENGTH, np.nan, "float32"), np.full(workspace_of(kernel), 0xA5, "uint8")
    tensors = [tvm.runtime.tensor(array) for array in (given, made, scratch)]
    run(*tensors)
    assert np.array_equal(tensors[1].numpy(), (given + 2) * 2 + 1)


def test_an_operand_is_not_overwritten_before_it_is_read() -> None:
    x = te.placeholder((8,), "float32", "x")
    y = te.placeholder((8,), "float32", "y")
    kept = te.compute((8,), lambda i: x[i] * y[i], "kept")
    assert in_place(te.create_prim_func([x, y, kept]), 0) is not None
    moved = te.compute((8,), lambda i: x[7 - i] + y[i], "moved")
    with pytest.raises(UnsupportedError, match="after writing others"):
        in_place(te.create_prim_func([x, y, moved]), 0)


@pytest.mark.parametrize("tiling", [SCALAR, HOST])
def test_kernels_of_unknown_size_and_with_numbers_stay_correct(tiling: Any) -> None:
    rows = te.var("rows", "int64")
    x = te.placeholder((rows, 6), "float32", "x")
    w = te.placeholder((6, 4), "float32", "w")
    k = te.reduce_axis((0, 6), "k")
    total = te.compute((rows, 4), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), "total")
    out = te.compute((rows, 4), lambda i, j: te.max(total[i, j], 0.0), "out")
    kernel = lean(te.create_prim_func([x, w, out]), tiling)
    assert parts(kernel.body, s_tir.SBlock)
    run = tvm.compile(kernel.with_attr("global_symbol", "main"), "llvm")["main"]
    rng = np.random.default_rng(0)
    left, right = (rng.standard_normal(s).astype("float32") for s in ((5, 6), (6, 4)))
    made = tvm.runtime.tensor(np.full((5, 4), np.nan, "float32"))
    run(tvm.runtime.tensor(left), tvm.runtime.tensor(right), made)
    expected = np.maximum(left @ right, 0)
    assert np.allclose(made.numpy(), expected, atol=1e-6)
