"""Float transposed convolutions with 8-bit weights, as in LiteRT's "hybrid" kernels.

The image is quantised to int8 at run time. Unlike in a convolution, each product is converted to
float before it is added, so that the order of summation matters: ascending rows, columns and
channels of the image. The taps of a result are those of ``kernels.transposed``.
"""

from typing import Any

from tvm import te, tirx

from tvm_serenity.kernels.arithmetic import i32
from tvm_serenity.kernels.build import prim_func
from tvm_serenity.kernels.dynamic import SCALE, ZERO, bias_of, scales_of, with_bias
from tvm_serenity.kernels.dynamic_records import DynamicTransposed, steps_columns
from tvm_serenity.kernels.transposed import tap


def transposed(spec: DynamicTransposed) -> Any:
    """Return the kernel ``(x, steps, weight, scales, bias if there is one, result)``."""
    batches, height, width, depth = spec.input_shape
    source = te.placeholder(spec.input_shape, "int8", "x")
    steps_of = te.placeholder((batches, steps_columns(True)), "float32", "steps")
    weight = te.placeholder(spec.weight_shape, "int8", "w")
    scales, own = scales_of(spec.scales)
    bias = bias_of(spec.output_shape[3], spec.biased)
    (sy, sx), (kh, kw) = spec.strides, spec.weight_shape[:2]
    down, across = -(-kh // sy), -(-kw // sx)
    jy, jx = te.reduce_axis((0, down), "jy"), te.reduce_axis((0, across), "jx")
    c = te.reduce_axis((0, depth), "c")

    def term(n: tirx.Var, y: tirx.Var, x: tirx.Var, f: tirx.Var) -> Any:
        row, first = tap(y + spec.before[0], down - 1 - jy, sy)
        column, second = tap(x + spec.before[1], across - 1 - jx, sx)
        inside = [row >= 0, row < height, column >= 0, column < width]
        zero = steps_of[n, ZERO]
        value = te.if_then_else(
            te.all(*inside), source[n, row, column, c], zero.astype("int8")
        ).astype("int32")
        factor = weight[first, second, c, f].astype("int32")
        taps = [*([first < kh] if kh % sy else []), *([second < kw] if kw % sx else [])]
        factor = te.if_then_else(te.all(*taps), factor, i32(0)) if taps else factor
        whole = (value - zero.astype("int32")) * factor
        made = whole.astype("float32") * own(f) * steps_of[n, SCALE]
        return te.sum(made, axis=[jy, jx, c])

    total = te.compute(spec.output_shape, term, name="sum")

    def result(*at: tirx.Var) -> Any:
        return with_bias(total(*at), [b[at[3]] for b in bias], spec.limits)

    out = te.compute(total.shape, result, name="out")
    return prim_func([source, steps_of, weight, scales, *bias, out])
