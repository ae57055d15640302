"""A kernel that replaces part of a tensor at a place known at run time; also in place."""

from typing import Any

from tvm import te, tirx
from tvm.script.ir_builder import tirx as T  # noqa: N812

from tvm_serenity.kernels.build import prim_func, written
from tvm_serenity.kernels.lean import LEAN
from tvm_serenity.kernels.records import UpdateSlice


def update_slice(spec: UpdateSlice) -> Any:
    """Return the kernel ``(x, part, begin, result)``.

    ``begin`` is clamped so that ``part`` fits.
    """
    shape, part, index = spec.shape, spec.part, spec.index
    x, new = te.placeholder(shape, spec.dtype, "x"), te.placeholder(part, spec.dtype, "part")
    begin = te.placeholder((len(shape),), index, "begin")

    def value(*at: tirx.Var) -> Any:
        inner = [i - _first(spec, begin[axis], axis) for axis, i in enumerate(at)]
        inside = [te.all(i >= 0, i < extent) for i, extent in zip(inner, part, strict=True)]
        return te.if_then_else(te.all(*inside), new(*inner), x(*at)) if at else new()

    return prim_func([x, new, begin, te.compute(shape, value, name="out")], spec)


def part_written(spec: UpdateSlice) -> Any:
    """Return the kernel ``(x, part, begin)`` that writes the part into ``x``, and nothing else."""
    rank = len(spec.shape)

    def body(x: Any, part: Any, begin: Any) -> None:
        with T.grid(*spec.part) as at:
            inner = [at] if rank == 1 else list(at)
            place = [i + _first(spec, begin[axis], axis) for axis, i in enumerate(inner)]
            T.buffer_store(x, part[tuple(inner)], place)

    buffers = {
        "x": (spec.shape, spec.dtype),
        "part": (spec.part, spec.dtype),
        "begin": ((rank,), spec.index),
    }
    return written(buffers, body).with_attr(LEAN, True)


def _first(spec: UpdateSlice, begin: Any, axis: int) -> Any:
    """Return the clamped index of the part's first element along an axis."""
    most = tirx.const(spec.shape[axis] - spec.part[axis], spec.index)
    return te.max(te.min(begin, most), tirx.const(0, spec.index)).astype("int64")
