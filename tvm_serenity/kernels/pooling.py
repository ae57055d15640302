"""Integer average pooling and means."""

from typing import Any

from tvm import te, tirx

from tvm_serenity.kernels.arithmetic import finished, i32, stored
from tvm_serenity.kernels.build import prim_func
from tvm_serenity.kernels.records import AveragePool as AveragePool
from tvm_serenity.kernels.records import Mean as Mean


def average_pool(spec: AveragePool) -> Any:
    """Return the kernel ``(x, result)``; halves are rounded away from zero."""
    nhwc = spec.layout == "NHWC"
    x = te.placeholder(spec.shape, spec.dtype, "x")
    height, width = spec.shape[1:3] if nhwc else spec.shape[2:4]
    (kh, kw), (sy, sx) = spec.window, spec.strides
    top, left, bottom, right = spec.padding
    ky, kx = te.reduce_axis((0, kh), "ky"), te.reduce_axis((0, kw), "kx")

    def term(*at: tirx.Var) -> Any:
        y, z = (at[1], at[2]) if nhwc else (at[2], at[3])
        row, column = y * sy + ky, z * sx + kx
        inside = []
        if top:
            inside.append(row >= top)
        if bottom:
            inside.append(row < height + top)
        if left:
            inside.append(column >= left)
        if right:
            inside.append(column < width + left)
        place = (
            (at[0], row - top, column - left, at[3])
            if nhwc
            else (at[0], at[1], row - top, column - left)
        )
        value = x(*place).astype("int32")
        if inside:
            value = te.if_then_else(
                te.all(*inside), value, i32(spec.zero_point if spec.requantise else 0)
            )
        if spec.requantise and spec.zero_point:
            value = value - i32(spec.zero_point)
        return te.sum(value, axis=[ky, kx])

    total = te.compute(spec.output_shape, term, name="sum")

    def mean(*at: tirx.Var) -> Any:
        y, z = (at[1], at[2]) if nhwc else (at[2], at[3])
        if spec.requantise:
            return finished(spec.requantise, ())(total(*at), None)
        count = _inside(y, sy, kh, top, bottom, height) * _inside(z, sx, kw, left, right, width)
        return stored(
            _rounded_mean(total(*at), count, spec.dtype), 0, spec.low, spec.high, spec.dtype
        )

    return prim_func([x, te.compute(spec.output_shape, mean, name="out")], spec)


def _inside(
    index: tirx.Expr, stride: int, window: int, before: int, after: int, extent: int
) -> Any:
    """Return the number of window steps inside the image."""
    if not before and not after:
        return i32(window)
    start = index.astype("int32") * i32(stride) - i32(before)
    return te.min(start + i32(window), i32(extent)) - te.max(start, i32(0))


def _rounded_mean(total: tirx.Expr, count: tirx.Expr, dtype: str) -> Any:
    half = tirx.truncdiv(count, i32(2))
    if dtype == "uint8":
        return tirx.truncdiv(total + half, count)
    return tirx.truncdiv(tirx.Select(total > 0, total + half, total - half), count)


def mean(spec: Mean) -> Any:
    """Return the kernel ``(x, result)``."""
    x = te.placeholder(spec.shape, spec.dtype, "x")
    steps = {a: te.reduce_axis((0, spec.shape[a]), f"k{a}") for a in spec.axes}
    kept = [1 if i in spec.axes else s for i, s in enumerate(spec.shape)]
    shape = kept if spec.keep else [s for i, s in enumerate(spec.shape) if i not in spec.axes]

    def term(*at: tirx.Var) -> Any:
        rest = list(at)
        place = []
        for i in range(len(spec.shape)):
            if i in steps:
                place.append(steps[i])
                if spec.keep:
                    rest.pop(0)
            else:
                place.append(rest.pop(0))
        return te.sum(x(*place).astype("int32") - i32(spec.zero_point), axis=list(steps.values()))

    total = te.compute(shape, term, name="sum")
    finish = finished(spec.requantise, ())
    out = te.compute(shape, lambda *at: finish(total(*at), None), name="out")
    return prim_func([x, out], spec)
