"""The integer kernel of BATCH_MATMUL with two variable operands."""

from typing import Any

from tvm import te, tirx

from tvm_serenity.kernels.arithmetic import i64, scaled, stored
from tvm_serenity.kernels.build import prim_func
from tvm_serenity.kernels.fixed_pairs import broadcast
from tvm_serenity.kernels.records import BatchMatmul


def batch_matmul(spec: BatchMatmul) -> Any:
    """Return the kernel ``(a, b, result)``; 16-bit products are summed in 64 bits, as in LiteRT."""
    a, b = (
        te.placeholder(shape, source.dtype, name)
        for shape, source, name in zip(spec.shapes, spec.sources, "ab", strict=True)
    )
    wide = "int64" if spec.result.dtype == "int16" else "int32"
    zeros = [tirx.const(s.zero_point, wide) for s in spec.sources]
    k = te.reduce_axis((0, spec.sizes[1]), "k")

    def product(*at: tirx.Var) -> Any:
        *batch, row, column = at
        x = (k, row) if spec.adjoint[0] else (row, k)
        y = (column, k) if spec.adjoint[1] else (k, column)
        first = a(*broadcast(batch, spec.shapes[0][:-2]), *x).astype(wide) - zeros[0]
        second = b(*broadcast(batch, spec.shapes[1][:-2]), *y).astype(wide) - zeros[1]
        return te.sum(first * second, axis=[k])

    total = te.compute(spec.output_shape, product, name="total")
    out = te.compute(spec.output_shape, lambda *at: _finished(spec, total(*at)), name="out")
    return prim_func([a, b, out], spec)


def _finished(spec: BatchMatmul, total: tirx.Expr) -> Any:
    result, m = spec.result, spec.multiplier
    if result.dtype == "int16":
        value, shift = m.value[0], m.shift[0]
        short = (value + (1 << 15)) >> 16 if value < 0x7FFF0000 else 0x7FFF
        right = 15 - shift
        whole = tirx.shift_right(total * i64(short) + i64(1 << (right - 1)), i64(right))
        scaled_total = whole.astype("int32")
    else:
        scaled_total = scaled(total, m, spec.rounding)
    return stored(scaled_total, result.zero_point, *result.limits, result.dtype)
