"""Bilinear resizing of stored values, rounded as in LiteRT's reference kernels."""

from typing import Any

import numpy as np
import numpy.typing as npt
from tvm import te, tirx

from tvm_serenity.kernels.build import prim_func
from tvm_serenity.kernels.records import Bilinear as Bilinear

Array = npt.NDArray[Any]
_ONE = 1 << 10
"""The weight 1 in fixed point."""


def bilinear(spec: Bilinear) -> Any:
    """Return the kernel ``(x, rows, row weights, columns, column weights, result)``.

    ``constants(spec)`` returns the other arguments.
    """
    n, _, _, c = spec.shape
    x = te.placeholder(spec.shape, spec.dtype, "x")
    tables = [te.placeholder(a.shape, str(a.dtype), f"t{i}") for i, a in enumerate(constants(spec))]
    rows, down, columns, along = tables
    finish = _rounded_integer if spec.dtype == "uint8" else _rounded
    wide = {"uint8": "float32", "int8": "int32", "int16": "int64"}[spec.dtype]

    def value(b: tirx.Var, y: tirx.Var, z: tirx.Var, k: tirx.Var) -> Any:
        def term(i: int, j: int) -> Any:
            corner = x[b, rows[i, y], columns[j, z], k].astype(wide)
            return corner * down[i, y].astype(wide) * along[j, z].astype(wide)

        return finish(term(0, 0) + term(1, 0) + term(0, 1) + term(1, 1), wide, spec.dtype)

    out = te.compute((n, *spec.size, c), value, name="out")
    return prim_func([x, *tables, out])


def constants(spec: Bilinear) -> tuple[Array, Array, Array, Array]:
    """Return the two source rows of each row and their weights, and the same for columns.

    int8 and int16 have weights in 1/1024, uint8 in float32.
    """
    return (*_of_axis(spec, 1), *_of_axis(spec, 2))


def _of_axis(spec: Bilinear, axis: int) -> tuple[Array, Array]:
    old, new, coordinates = spec.shape[axis], spec.size[axis - 1], spec.coordinates
    if spec.dtype == "uint8":
        return _along_float(old, new, coordinates)
    places = nearest_places if spec.exact else _places
    return _along(places(old, new, coordinates), old)


def _places(old: int, new: int, coordinates: str) -> Array:
    """Return result positions in 1/1024 of a pixel: multiples of a rounded step."""
    scale = (_ONE * old + new // 2) // new
    if coordinates == "align_corners" and new > 1:
        scale = (_ONE * (old - 1) + (new - 1) // 2) // (new - 1)
    at = np.arange(new) * scale
    return at + scale // 2 - _ONE // 2 if coordinates == "half_pixel" else at


def nearest_places(old: int, new: int, coordinates: str) -> Array:
    """Return result positions among ``old`` pixels, each rounded to 1/1024 of a pixel."""
    return np.asarray(np.rint(places(old, new, coordinates) * _ONE), np.int64)


def places(old: int, new: int, coordinates: str) -> Array:
    """Return result positions among ``old`` pixels."""
    at: Array = np.arange(new, dtype=np.float64)
    if coordinates == "align_corners" and new > 1:
        return at * (old - 1) / (new - 1)
    return (at + 0.5) * old / new - 0.5 if coordinates == "half_pixel" else at * old / new


def _along(at: Array, old: int) -> tuple[Array, Array]:
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


def _rounded_integer(total: tirx.Expr, _wide: str, dtype: str) -> Any:
    return (total + tirx.const(0.5, "float32")).astype("int32").astype(dtype)


def _rounded(total: tirx.Expr, wide: str, dtype: str) -> Any:
    half = tirx.Select(total > 0, tirx.const(1 << 19, wide), tirx.const(-(1 << 19), wide))
    return tirx.truncdiv(total + half, tirx.const(1 << 20, wide)).astype(dtype)
