"""Integer convolutions and dense layers with sums in registers, requantised on output.

Weights are ``[kh, kw, input channels of a group, output channels]`` (depthwise: ``[kh, kw, output
channels]``), so that neighbouring outputs are adjacent in memory. The creator of the spec folds the
input's zero point into the bias; padding reads the zero point.

``convolution`` reads an input that is stored in pieces along the channels (a folded concatenation).
Row kernels, with a buffer per input row, are created in ``kernels.rows``.
"""

from collections.abc import Callable
from typing import Any

from tvm import te, tirx

from tvm_serenity.kernels.arithmetic import finished, i32
from tvm_serenity.kernels.build import prim_func
from tvm_serenity.kernels.records import Convolution as Convolution
from tvm_serenity.kernels.records import Dense as Dense
from tvm_serenity.kernels.records import WindowSums

Fetch = Callable[[Any, Any, Any, Any], Any]
"""Returns the element at image, row, column, channel."""
Fill = Callable[[Any], Any]
Change = Callable[[Any, Any], Any]


def convolution(spec: Convolution) -> Any:
    """Return the kernel ``(pieces..., weight, bias, multipliers..., result)``."""
    sources = [te.placeholder(shape, spec.dtype, f"x{i}") for i, shape in enumerate(spec.pieces)]
    weight, bias, constants = _parameters(spec)
    sums, first = [], 0
    for source in sources:
        channels = spec.sizes(source.shape)[3]
        fetch = padded(spec, source, lambda _: tirx.const(spec.input_zero, spec.dtype))
        sums.append(summed(spec, fetch, weight, first, int(channels)))
        first += int(channels)
    finish = finished(spec.requantise, constants)

    def result(*at: tirx.Var) -> Any:
        channel = at[3] if spec.layout == "NHWC" else at[1]
        total = bias[channel].astype(_sum_type(spec.dtype))
        for part in sums:
            total = part(*at) + total
        return finish(total, channel)

    out = te.compute(spec.output_shape, result, name="out")
    return prim_func([*sources, weight, bias, *constants, out], spec)


def _parameters(spec: Convolution) -> tuple[Any, Any, list[Any]]:
    weight = te.placeholder(spec.weight_shape, spec.weight_dtype, "w")
    bias = te.placeholder((spec.channels,), "int32", "b")
    constants = [
        te.placeholder(a.shape, str(a.dtype), f"m{i}")
        for i, a in enumerate(spec.requantise.arrays())
    ]
    return weight, bias, constants


def padded(spec: WindowSums, source: te.Tensor, fill: Fill, change: Change | None = None) -> Fetch:
    """Return a reader of ``source`` padded with ``fill``, the padding value of an image.

    ``change`` maps each value, given the number of its image.
    """
    _, height, width, _ = (int(s) for s in spec.sizes(source.shape))
    top, left, bottom, right = spec.padding

    def fetch(n: tirx.Var, y: tirx.Expr, x: tirx.Expr, c: tirx.Expr | tirx.IterVar) -> Any:
        inside = []
        if top:
            inside.append(y >= top)
        if bottom:
            inside.append(y < height + top)
        if left:
            inside.append(x >= left)
        if right:
            inside.append(x < width + left)
        value = source(*spec.position(n, y - top, x - left, c))
        value = te.if_then_else(te.all(*inside), value, fill(n)) if inside else value
        return value if change is None else change(value, n)

    return fetch


def summed(spec: WindowSums, fetch: Fetch, weight: te.Tensor, first: int, channels: int) -> Any:
    """Return the int32 sums over input channels ``first`` and following that ``fetch`` reads."""
    kh, kw = spec.weight_shape[:2]
    ky, kx = te.reduce_axis((0, kh), "ky"), te.reduce_axis((0, kw), "kx")
    (sy, sx), (dy, dx) = spec.strides, spec.dilation
    axes = [ky, kx]
    whole = sum(spec.sizes(piece)[3] for piece in spec.pieces)
    if not spec.depthwise:
        within = channels if spec.groups == 1 else spec.weight_shape[2]
        kc = te.reduce_axis((0, within), "kc")
        axes.append(kc)

    def term(*at: tirx.Var) -> Any:
        n, y, x, f = spec.sizes(at)
        if spec.depthwise:
            every = spec.channels // whole
            c, w = (f if every == 1 else f // every), weight[ky, kx, f]
        elif spec.groups == 1:
            c, w = kc, weight[ky, kx, kc + first, f]
        else:
            c = f // (spec.channels // spec.groups) * spec.weight_shape[2] + kc
            w = weight[ky, kx, kc, f]
        value = fetch(n, y * sy + ky * dy, x * sx + kx * dx, c)
        return te.sum(_product(spec, value, w).astype(_sum_type(spec.dtype)), axis=axes)

    return te.compute(spec.output_shape, term, name=f"sum{first}" if first else "sum")


def _sum_type(dtype: str) -> str:
    """Return the type of sums of products of ``dtype`` and 8-bit weights."""
    return "int64" if dtype == "int16" else "int32"


def _product(spec: WindowSums, value: tirx.Expr, weight: tirx.Expr) -> Any:
    factor = weight.astype("int32")
    if spec.weight_zero:
        factor = factor - i32(spec.weight_zero)
    return value.astype("int32") * factor


def dense(spec: Dense) -> Any:
    """Return the kernel ``(x, weight, bias, multipliers..., result)``."""
    x = te.placeholder((spec.rows, spec.inputs), spec.dtype, "x")
    weight = te.placeholder((spec.inputs, spec.units), spec.weight_dtype, "w")
    bias = te.placeholder((spec.units,), "int32", "b")
    constants = [
        te.placeholder(a.shape, str(a.dtype), f"m{i}")
        for i, a in enumerate(spec.requantise.arrays())
    ]
    k, wide = te.reduce_axis((0, spec.inputs), "k"), _sum_type(spec.dtype)

    def term(i: tirx.Var, j: tirx.Var) -> Any:
        w = weight[k, j].astype("int32")
        product = x[i, k].astype("int32") * (w - i32(spec.weight_zero) if spec.weight_zero else w)
        return te.sum(product.astype(wide), axis=[k])

    total = te.compute((spec.rows, spec.units), term, name="sum")
    finish = finished(spec.requantise, constants)

    def value(i: tirx.Var, j: tirx.Var) -> Any:
        return finish(total[i, j] + bias[j].astype(wide), j)

    out = te.compute(total.shape, value, name="out")
    return prim_func([x, weight, bias, *constants, out], spec)
