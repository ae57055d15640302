"""Pooling of PyTorch and ONNX with explicit padding.

TVM's ceiling mode adds windows that are entirely in the padding, and counts elements beyond it.
Here the number of windows is computed first, the padding is what they need, and an average is the
sum divided by the number of elements that its definition counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import relax

_LAYOUTS = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


@dataclass(frozen=True)
class AxisWindow:
    """The window along one axis; ``begin`` and ``end``: the stated padding."""

    size: int
    stride: int
    begin: int
    end: int
    dilation: int = 1
    ceil: bool = False

    @property
    def span(self) -> int:
        """The elements from the first to the last tap."""
        return self.dilation * (self.size - 1) + 1

    def count(self, extent: int) -> int:
        """Return the number of windows over ``extent`` elements."""
        free = extent + self.begin + self.end - self.span
        count = (-(-free // self.stride) if self.ceil else free // self.stride) + 1
        if self.ceil and (count - 1) * self.stride >= extent + self.begin:
            count -= 1  # it would start in the padding at the end
        return count

    def needed(self, extent: int) -> int:
        """Return the padding at the end that the windows reach."""
        last = (self.count(extent) - 1) * self.stride + self.span
        return max(0, last - extent - self.begin)

    def divisors(self, extent: int, with_padding: bool) -> Any:
        """Return the number of elements that each window counts."""
        starts = np.arange(self.count(extent))[:, None] * self.stride - self.begin
        taps = starts + np.arange(self.size) * self.dilation
        low, high = (-self.begin, extent + self.end) if with_padding else (0, extent)
        return ((taps >= low) & (taps < high)).sum(1)


def max_pool(x: relax.Expr, extents: Sequence[int], windows: Sequence[AxisWindow]) -> Any:
    """Return the maximum of each window of ``x``, batch and channel first.

    ``extents``: of the spatial axes.
    """
    return _pool("max", x, extents, windows)


def average_pool(
    x: relax.Expr,
    extents: Sequence[int],
    windows: Sequence[AxisWindow],
    with_padding: bool,
    divisor: int | None = None,
) -> Any:
    """Return the average of each window of ``x``, or its sum divided by ``divisor``."""
    if divisor is None and not with_padding and all(w.dilation == 1 for w in windows):
        return _pool("avg", x, extents, windows, count_include_pad=False)
    # the average over all elements of the window
    summed = _pool("avg", x, extents, windows, count_include_pad=True)
    whole = int(np.prod([window.size for window in windows]))
    counts = np.ones((), np.int64)
    for window, extent in zip(windows, extents, strict=True):
        counts = np.multiply.outer(counts, window.divisors(extent, with_padding))
    if divisor is not None:
        counts = np.full_like(counts, divisor)
    if (counts == whole).all():
        return summed
    dtype = str(x.ty.dtype.dtype)
    return relax.op.multiply(summed, relax.const((whole / counts)[None, None].astype(dtype), dtype))


def _pool(
    kind: str,
    x: relax.Expr,
    extents: Sequence[int],
    windows: Sequence[AxisWindow],
    **options: bool,
) -> Any:
    rank = len(windows)
    return getattr(relax.op.nn, f"{kind}_pool{rank}d")(
        x,
        pool_size=[window.size for window in windows],
        strides=[window.stride for window in windows],
        padding=[w.begin for w in windows]
        + [w.needed(e) for w, e in zip(windows, extents, strict=True)],
        dilation=[window.dilation for window in windows],
        ceil_mode=False,
        layout=_LAYOUTS[rank],
        **options,
    )
