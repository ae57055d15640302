"""The integer kernel of BATCH_MATMUL: both operands vary."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import te, tirx

from tvm_serenity.kernels.arithmetic import i64, scaled, stored
from tvm_serenity.kernels.build import prim_func
from tvm_serenity.kernels.fixed_pairs import broadcast
from tvm_serenity.kernels.pointwise import Shape
from tvm_serenity.quantize.fixed import multiplier
from tvm_serenity.quantize.params import Affine


@dataclass(frozen=True)
class BatchMatmul:
    """Operands of shape (..., rows, inner) and (..., inner, columns), or transposed if adjoint."""

    shapes: tuple[Shape, Shape]
    adjoint: tuple[bool, bool]
    sources: tuple[Affine, Affine]
    result: Affine
    rounding: str = "tflite"

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Rows, inner extent and columns."""
        (left, right), (flip_x, flip_y) = self.shapes, self.adjoint
        rows, inner = (left[-1], left[-2]) if flip_x else (left[-2], left[-1])
        return rows, inner, right[-2] if flip_y else right[-1]

    @property
    def output_shape(self) -> Shape:
        """The shape of the result."""
        rows, _, columns = self.sizes
        batch = np.broadcast_shapes(self.shapes[0][:-2], self.shapes[1][:-2])
        return (*(int(extent) for extent in batch), rows, columns)


def batch_matmul(spec: BatchMatmul) -> Any:
    """Return the kernel ``(a, b, result)``; 16-bit sums are kept in 64 bits, as LiteRT does."""
    a, b = (
        te.placeholder(shape, source.dtype, name)
        for shape, source, name in zip(spec.shapes, spec.sources, "ab", strict=True)
    )
    wide = "int64" if spec.result.dtype == "int16" else "int32"
    zeros = [tirx.const(s.zero_point, wide) for s in spec.sources]
    k = te.reduce_axis((0, spec.sizes[1]), "k")

    def product(*at: Any) -> Any:
        *batch, row, column = at
        x = (k, row) if spec.adjoint[0] else (row, k)
        y = (column, k) if spec.adjoint[1] else (k, column)
        first = a(*broadcast(batch, spec.shapes[0][:-2]), *x).astype(wide) - zeros[0]
        second = b(*broadcast(batch, spec.shapes[1][:-2]), *y).astype(wide) - zeros[1]
        return te.sum(first * second, axis=[k])

    total = te.compute(spec.output_shape, product, name="total")
    out = te.compute(spec.output_shape, lambda *at: _finished(spec, total(*at)), name="out")
    return prim_func([a, b, out])


def _finished(spec: BatchMatmul, total: Any) -> Any:
    result = spec.result
    scale = np.float32(spec.sources[0].scale) * np.float32(spec.sources[1].scale)
    m = multiplier(float(scale) / result.scale)
    if result.dtype == "int16":
        value, shift = m.value[0], m.shift[0]
        short = (value + (1 << 15)) >> 16 if value < 0x7FFF0000 else 0x7FFF
        right = 15 - shift
        whole = tirx.shift_right(total * i64(short) + i64(1 << (right - 1)), i64(right))
        scaled_total = whole.astype("int32")
    else:
        scaled_total = scaled(total, m, spec.rounding)
    return stored(scaled_total, result.zero_point, *result.limits, result.dtype)
