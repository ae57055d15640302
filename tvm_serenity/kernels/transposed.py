"""Integer transposed convolutions as gathers: each result reads its inputs.

``out[y, x]`` reads the inputs ``i`` with ``i * stride + k = y + top`` for a tap ``k`` of the
filter: ``k`` is ``(y + top) % stride`` plus a multiple of the stride, and the sum runs over those
multiples. Each load has its own guard, as row kernels require. Weights are ``[kh, kw, input
channels, output channels]``.
"""

from collections.abc import Sequence
from typing import Any

from tvm import te, tirx

from tvm_serenity.kernels.arithmetic import finished, i32
from tvm_serenity.kernels.build import prim_func
from tvm_serenity.kernels.records import TransposedConvolution


def transposed(spec: TransposedConvolution) -> Any:
    """Return the kernel ``(x, weight, bias, multipliers..., result)``."""
    source = te.placeholder(spec.input_shape, spec.dtype, "x")
    weight = te.placeholder(spec.weight_shape, spec.weight_dtype, "w")
    bias = te.placeholder((spec.output_shape[3],), "int32", "b")
    constants = [
        te.placeholder(a.shape, str(a.dtype), f"m{i}")
        for i, a in enumerate(spec.requantise.arrays())
    ]
    (sy, sx), (kh, kw) = spec.strides, spec.weight_shape[:2]
    jy, jx = te.reduce_axis((0, -(-kh // sy)), "jy"), te.reduce_axis((0, -(-kw // sx)), "jx")
    wide = "int64" if spec.dtype == "int16" else "int32"
    c = te.reduce_axis((0, spec.input_shape[3]), "c")

    def term(n: tirx.Var, y: tirx.Var, x: tirx.Var, f: tirx.Var) -> Any:
        row, first = tap(y + spec.before[0], jy, sy)
        column, second = tap(x + spec.before[1], jx, sx)
        inside = [row >= 0, row < spec.input_shape[1], column >= 0, column < spec.input_shape[2]]
        outside = tirx.const(spec.input_zero, spec.dtype)
        value = te.if_then_else(te.all(*inside), source[n, row, column, c], outside)
        factor = weight[first, second, c, f].astype("int32")
        factor = factor - i32(spec.weight_zero) if spec.weight_zero else factor
        taps = [*([first < kh] if kh % sy else []), *([second < kw] if kw % sx else [])]
        factor = te.if_then_else(te.all(*taps), factor, i32(0)) if taps else factor
        product = (value.astype("int32") - i32(spec.input_zero)) * factor
        return te.sum(product.astype(wide), axis=[jy, jx, c])

    total = te.compute(spec.output_shape, term, name="sum")
    finish = finished(spec.requantise, constants)

    def result(*at: tirx.Var) -> Any:
        return finish(total(*at) + bias[at[3]].astype(wide), at[3])

    out = te.compute(total.shape, result, name="out")
    return prim_func([source, weight, bias, *constants, out])


def real_transposed(
    x: te.Tensor,
    weight: te.Tensor,
    made: Sequence[int],
    strides: tuple[int, int],
    before: tuple[int, int],
) -> Any:
    """Return a float transposed convolution, an NHWC tensor of shape ``made``.

    ``weight``: [height, width, input channels, output channels]. ``before``: results dropped at the
    top and left.
    """
    (sy, sx), (kh, kw) = strides, [int(extent) for extent in weight.shape[:2]]
    jy, jx = te.reduce_axis((0, -(-kh // sy)), "jy"), te.reduce_axis((0, -(-kw // sx)), "jx")
    c = te.reduce_axis((0, x.shape[3]), "c")

    def term(n: tirx.Var, y: tirx.Var, z: tirx.Var, f: tirx.Var) -> Any:
        row, first = tap(y + before[0], jy, sy)
        column, second = tap(z + before[1], jx, sx)
        zero = tirx.const(0, x.dtype)
        inside = [row >= 0, row < x.shape[1], column >= 0, column < x.shape[2]]
        value = te.if_then_else(te.all(*inside), x[n, row, column, c], zero)
        taps = [*([first < kh] if kh % sy else []), *([second < kw] if kw % sx else [])]
        factor = weight[first, second, c, f]
        factor = te.if_then_else(te.all(*taps), factor, zero) if taps else factor
        return te.sum(value * factor, axis=[jy, jx, c])

    return te.compute(tuple(made), term, name="out")


def tap(position: tirx.Expr, step: Any, stride: int) -> tuple[Any, Any]:
    """Return the input and the tap that meet at ``position``, ``step`` inputs back."""
    position = position.astype("int64")
    wide = tirx.const(stride, "int64")
    return (
        tirx.floordiv(position, wide) - step,
        tirx.floormod(position, wide) + step * wide,
    )
