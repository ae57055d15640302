"""RESIZE_BILINEAR of stored values: in steps of 1/1024, for uint8 in float32."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.kernels.records import Bilinear
from tvm_serenity.operators.parts import IntegerMeaning
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import ALL, Array, Calls, Expr, Scene, four

_ALIGN_CORNERS, _HALF_PIXEL = 2, 3


def _read(scene: Scene) -> Bilinear:
    source, result, options = scene.stored(0), scene.result(), scene.options
    scene.only(ALL, source, result)
    scene.unscaled(source, result)
    coordinates = "half_pixel" if options.u8(_HALF_PIXEL) else "asymmetric"
    if options.u8(_ALIGN_CORNERS):
        coordinates = "align_corners"
    made = four(result.shape)
    return Bilinear(four(source.shape), (made[1], made[2]), source.dtype, coordinates)


def _compute(op: Bilinear, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels import resize

    tables = resize.constants(op)
    if tables[0].max() >= op.shape[1] or tables[2].max() >= op.shape[2]:
        raise UnsupportedError("its fixed-point coordinates are outside of the image")
    return calls.kernel("q_resize", resize.bilinear(op), values[0], *tables)


def _reference(op: Bilinear, x: Array, _size: Array) -> Array:
    """``ResizeBilinearInteger``; of uint8 ``ResizeBilinear`` in float32."""
    f32 = np.float32
    wide: Any = f32 if op.dtype == "uint8" else np.int64
    one = wide(1 if op.dtype == "uint8" else 1024)
    axes = [_along(op, axis, np.arange(made)) for axis, made in zip((1, 2), op.size, strict=True)]
    total = np.zeros((op.shape[0], *op.size, op.shape[3]), wide)
    (at, low, high), (across, left, right) = axes
    down, along = at - low.astype(wide) * one, across - left.astype(wide) * one
    for columns, horizontal in ((left, one - along), (right, along)):
        for rows, vertical in ((low, one - down), (high, down)):
            corner = x[:, rows][:, :, columns].astype(wide)
            total = total + corner * vertical[:, None, None] * horizontal[:, None]
    if op.dtype == "uint8":
        return (total + f32(0.5)).astype(np.int32).astype(np.uint8)
    half = np.where(total > 0, 1 << 19, -(1 << 19))
    return np.trunc((total + half) / (1 << 20)).astype(op.dtype)


def _along(op: Bilinear, axis: int, at: Array) -> tuple[Array, Array, Array]:
    """Return the position of each result on an axis, in steps, and the pixels around it."""
    old, new = op.shape[axis], op.size[axis - 1]
    ends = op.coordinates == "align_corners" and new > 1
    if op.dtype == "uint8":
        f32 = np.float32
        scale = f32(old - 1) / f32(new - 1) if ends else f32(old) / f32(new)
        real = at.astype(f32)
        middle = op.coordinates == "half_pixel"
        real = (real + f32(0.5)) * scale - f32(0.5) if middle else real * scale
        low, high = np.floor(real), np.ceil(real)
        return real, np.maximum(low, 0).astype(int), np.minimum(high, old - 1).astype(int)
    if op.exact:
        place = at * (old - 1) / (new - 1) if ends else at * old / new
        shift = 0.5 * old / new - 0.5 if op.coordinates == "half_pixel" else 0.0
        whole = np.rint((place + shift) * 1024).astype(int)
    else:
        steps = (1024 * old + new // 2) // new
        if ends:
            steps = (1024 * (old - 1) + (new - 1) // 2) // (new - 1)
        whole = at * steps + (steps // 2 - 512 if op.coordinates == "half_pixel" else 0)
    low, high = np.trunc(whole / 1024).astype(int), np.trunc((whole + 1023) / 1024).astype(int)
    return whole, np.maximum(low, 0), np.minimum(high, old - 1)


OPERATORS = (
    Operator(
        kinds=("RESIZE_BILINEAR",),
        integers=IntegerMeaning(read=_read, compute=_compute, reference=_reference, in_float=True),
    ),
)
