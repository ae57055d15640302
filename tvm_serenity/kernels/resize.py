"""Bilinear resizing of stored values, as LiteRT's reference kernels round it."""

from typing import Any

import numpy as np
import numpy.typing as npt
from tvm import te, tirx

from tvm_serenity.kernels.build import prim_func
from tvm_serenity.kernels.records import Bilinear as Bilinear

Array = npt.NDArray[Any]
_ONE = 1 << 10
"""A weight of 1 in fixed point."""


def bilinear(spec: Bilinear) -> Any:
    """Return the kernel ``(x, rows, row weights, columns, column weights, result)``.

    The other arguments are ``constants(spec)``.
    """
    n, _, _, c = spec.shape
    x = te.placeholder(spec.shape, spec.dtype, "x")
    tables = [te.placeholder(a.shape, str(a.dtype), f"t{i}") for i, a in enumerate(constants(spec))]
    rows, down, columns, along = tables
    finish = _whole if spec.dtype == "uint8" else _rounded
    wide = {"uint8": "float32", "int8": "int32", "int16": "int64"}[spec.dtype]

    def value(b: tirx.Var, y: tirx.Var, z: tirx.Var, k: tirx.Var) -> Any:
        def term(i: int, j: int) -> Any:
            corner = x[b, rows[i, y], columns[j, z], k].astype(wide)
            return corner * down[i, y].astype(wide) * along[j, z].astype(wide)

        return finish(term(0, 0) + term(1, 0) + term(0, 1) + term(1, 1), wide, spec.dtype)

    out = te.compute((n, *spec.size, c), value, name="out")
    return prim_func([x, *tables, out])


def constants(spec: Bilinear) -> tuple[Array, Array, Array, Array]:
    """Return which two rows each row is made of and their weights; the same of columns.

    int8 and int16 have weights in 1/1024, uint8 in float32.
    """
    along = _along_float if spec.dtype == "uint8" else _along
    return (
        *along(spec.shape[1], spec.size[0], spec.coordinates),
        *along(spec.shape[2], spec.size[1], spec.coordinates),
    )


def _along(old: int, new: int, coordinates: str) -> tuple[Array, Array]:
    scale = (_ONE * old + new // 2) // new
    if coordinates == "align_corners" and new > 1:
        scale = (_ONE * (old - 1) + (new - 1) // 2) // (new - 1)
    at = np.arange(new) * scale
    if coordinates == "half_pixel":
        at = at + scale // 2 - _ONE // 2
    low = np.maximum(np.trunc(at / _ONE).astype(np.int64), 0)
    high = np.minimum((at + _ONE - 1) // _ONE, old - 1)
    weight = at - _ONE * low
    return _pair(low, high), _pair(_ONE - weight, weight)


def _along_float(old: int, new: int, coordinates: str) -> tuple[Array, Array]:
    one, half = np.float32(1), np.float32(0.5)
    scale = np.float32(old) / np.float32(new)
    if coordinates == "align_corners" and new > 1:
        scale = np.float32(old - 1) / np.float32(new - 1)
    at = np.arange(new).astype(np.float32)
    at = (at + half) * scale - half if coordinates == "half_pixel" else at * scale
    low = np.maximum(np.floor(at).astype(np.int64), 0)
    high = np.minimum(np.ceil(at).astype(np.int64), old - 1)
    weight = at - low.astype(np.float32)
    return _pair(low, high), np.stack([one - weight, weight]).astype(np.float32)


def _pair(first: Array, second: Array) -> Array:
    return np.stack([first, second]).astype(np.int32)


def _whole(total: tirx.Expr, _wide: str, dtype: str) -> Any:
    return (total + tirx.const(0.5, "float32")).astype("int32").astype(dtype)


def _rounded(total: tirx.Expr, wide: str, dtype: str) -> Any:
    half = tirx.Select(total > 0, tirx.const(1 << 19, wide), tirx.const(-(1 << 19), wide))
    return tirx.truncdiv(total + half, tirx.const(1 << 20, wide)).astype(dtype)
