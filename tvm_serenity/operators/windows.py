"""Pooling windows over images."""

from dataclasses import dataclass

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.needs import SAME, Need, Seen, windowed
from tvm_serenity.operators.scene import ALL, Array, Scene, four

_PADDING, _STRIDE_W, _STRIDE_H, _FILTER_W, _FILTER_H = range(5)
ACTIVATION = 5
"""The option field of a pool's activation."""


@dataclass(frozen=True)
class Windows:
    """Windows of ``size`` at ``strides`` over an NHWC image.

    ``padding``: top, left, bottom, right. ``low`` and ``high``: the limits of the result.
    """

    shape: tuple[int, int, int, int]
    made: tuple[int, int, int, int]
    dtype: str
    size: tuple[int, int]
    strides: tuple[int, int]
    padding: tuple[int, int, int, int]
    low: int
    high: int


def pooled_by_rows(op: Seen) -> tuple[Need, ...]:
    """Return the rows that a pool needs."""
    return windowed(op, op.along(op.options.i32(_FILTER_H), op.options.i32(_FILTER_W)))


def read_windows(scene: Scene) -> Windows:
    """Return the windows of a pool whose result has the scale of its input."""
    (source,), result = scene.inputs(), scene.result()
    scene.only(ALL, source, result)
    scene.unscaled(source, result)
    options, shape, made = scene.options, four(source.shape), four(result.shape)
    size = (options.i32(_FILTER_H), options.i32(_FILTER_W))
    strides = (options.i32(_STRIDE_H), options.i32(_STRIDE_W))
    if min(*size, *strides) < 1:
        raise UnsupportedError(f"windows of {size} with strides {strides}: all must be at least 1")
    same = options.u8(_PADDING) == SAME
    top, bottom = padding_around(shape[1], made[1], size[0], strides[0], same)
    left, right = padding_around(shape[2], made[2], size[1], strides[1], same)
    low, high = scene.limits(result, ACTIVATION)
    return Windows(shape, made, source.dtype, size, strides, (top, left, bottom, right), low, high)


def padding_around(extent: int, stated: int, size: int, stride: int, same: bool) -> tuple[int, int]:
    """Return the padding before and after an axis under SAME; (0, 0) under VALID.

    ``extent``: of the input; ``stated``: the extent of the result in the file. Raises
    :class:`UnsupportedError` if the windows give another extent.
    """
    count = -(-extent // stride) if same else (extent - size) // stride + 1
    if count != stated:
        raise UnsupportedError(
            f"windows of {size} with stride {stride} give {count} results on an axis of {extent}, "
            f"but the file states {stated}"
        )
    missing = max((count - 1) * stride + size - extent, 0) if same else 0
    return missing // 2, missing - missing // 2


def cut(
    x: Array,
    size: tuple[int, int],
    strides: tuple[int, int],
    padding: tuple[int, int, int, int],
) -> tuple[Array, Array]:
    """Return the elements of each window in two last axes, and a mask of those in the image.

    ``x`` is NHWC; elements outside of the image are 0.
    """
    top, left, bottom, right = padding
    borders = ((0, 0), (top, bottom), (left, right), (0, 0))
    padded = np.pad(x.astype(np.int64), borders)
    inside = np.pad(np.ones(x.shape, np.bool_), borders)
    found = [
        np.lib.stride_tricks.sliding_window_view(a, size, (1, 2))[:, :: strides[0], :: strides[1]]
        for a in (padded, inside)
    ]
    return found[0], found[1]
