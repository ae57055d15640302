"""SVDF's sums of states: each unit weights the elements of its own."""

from typing import Any

from tvm import te, tirx

from tvm_serenity.kernels.arithmetic import finished
from tvm_serenity.kernels.build import prim_func
from tvm_serenity.kernels.records import FilterSum as FilterSum


def filters(spec: FilterSum) -> Any:
    """Return the kernel ``(x, weight, bias, result)``; the bias includes the zero point."""
    x = te.placeholder((spec.batch, spec.units, spec.inputs), spec.dtype, "x")
    weight = te.placeholder((spec.units, spec.inputs), spec.weight_dtype, "w")
    bias = te.placeholder((spec.units,), "int32", "b")
    # LiteRT's 32-bit sums of 16-bit products may overflow and wrap; TVM's must not, hence 64 bits.
    wide = "int64" if spec.dtype == "int16" else "int32"
    k = te.reduce_axis((0, spec.inputs), "k")
    total = te.compute(
        (spec.batch, spec.units),
        lambda n, u: te.sum(
            x[n, u, k].astype(wide) * weight[u, k].astype(wide),
            axis=[k],
        ),
        name="sum",
    )
    finish = finished(spec.requantise, ())

    def value(n: tirx.Var, u: tirx.Var) -> Any:
        return finish((total[n, u] + bias[u].astype(wide)).astype("int32"), u)

    out = te.compute(total.shape, value, name="out")
    return prim_func([x, weight, bias, out], spec)
