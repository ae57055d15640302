"""A kernel that replaces part of a tensor at a place known at run time."""

from typing import Any

from tvm import te, tirx

from tvm_serenity.kernels.build import prim_func

Shape = tuple[int, ...]


def update_slice(shape: Shape, part: Shape, dtype: str, index: str) -> Any:
    """Return the kernel ``(x, part, begin, result)``.

    ``begin`` is clamped so that ``part`` fits.
    """
    x, new = te.placeholder(shape, dtype, "x"), te.placeholder(part, dtype, "part")
    begin = te.placeholder((len(shape),), index, "begin")

    def first(axis: int) -> Any:
        most = tirx.const(shape[axis] - part[axis], index)
        return te.max(te.min(begin[axis], most), tirx.const(0, index)).astype("int64")

    def value(*at: tirx.Var) -> Any:
        inner = [i - first(axis) for axis, i in enumerate(at)]
        inside = [te.all(i >= 0, i < extent) for i, extent in zip(inner, part, strict=True)]
        return te.if_then_else(te.all(*inside), new(*inner), x(*at)) if at else new()

    return prim_func([x, new, begin, te.compute(shape, value, name="out")])
