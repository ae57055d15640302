"""The operators of random Relax graphs: each function adds one where a value fits, or says no."""

from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import relax

from tests.conformance.relax_graphs import MOST_INTEGER, Growing, Value
from tests.conformance.relax_pointwise import binary, cast, clip, compare, requantise, unary

op = relax.op
nn = relax.op.nn

FLOAT = "float32"


def _image(value: Value) -> bool:
    return len(value.shape) == 4 and value.dtype in (FLOAT, "int8", "uint8")


def _convolution(g: Growing, depthwise: bool) -> bool:
    x = g.find(_image)
    if x is None:
        return False
    layout = g.one(["NHWC", "NHWC", "NCHW"])
    height, width, channels = [
        x.shape["NHWC".index(a) if layout == "NHWC" else "NCHW".index(a)] for a in "HWC"
    ]
    kernel = (g.between(1, min(3, height)), g.between(1, min(3, width)))
    made = channels if depthwise else g.one([1, 2, 3, 4, 5, 8, 12])
    inner = 1 if depthwise else channels
    shape = (*kernel, inner, made) if layout == "NHWC" else (made, inner, *kernel)
    w = g.weight(shape, FLOAT if x.is_float else "int8", 1 if x.is_float else 127)
    bound = x.bound * w.bound * kernel[0] * kernel[1] * inner
    if not x.is_float and bound > MOST_INTEGER:
        return False
    expr = nn.conv2d(
        x.var,
        w.var,
        strides=g.one([(1, 1), (1, 1), (2, 2), (1, 2)]),
        padding=g.one([(0, 0), (1, 1), (0, 0, 1, 1), (1, 0, 0, 2)]),
        groups=channels if depthwise else 1,
        data_layout=layout,
        kernel_layout="HWIO" if layout == "NHWC" else "OIHW",
        out_dtype=FLOAT if x.is_float else "int32",
    )
    return g.emit(expr, bound) is not None


def conv2d(g: Growing) -> bool:
    """A convolution, of 8-bit values with sums of 32 bits."""
    return _convolution(g, depthwise=False)


def depthwise(g: Growing) -> bool:
    """A convolution of each channel."""
    return _convolution(g, depthwise=True)


def matmul(g: Growing) -> bool:
    """A product with weights, or of a value with its own transpose."""
    x = g.find(lambda v: len(v.shape) >= 2 and v.dtype in (FLOAT, "int8"))
    if x is None:
        return False
    depth = x.shape[-1]
    if x.is_float and g.chance(0.3):
        axes = [*range(len(x.shape) - 2), len(x.shape) - 1, len(x.shape) - 2]
        other: Any = op.permute_dims(x.var, axes)
        return g.emit(op.matmul(x.var, other), x.bound * x.bound * depth) is not None
    made = g.one([1, 2, 3, 5, 8, 10])
    w = g.weight((depth, made), x.dtype, 1 if x.is_float else 127)
    out = FLOAT if x.is_float else "int32"
    return g.emit(op.matmul(x.var, w.var, out_dtype=out), x.bound * w.bound * depth) is not None


def pool(g: Growing) -> bool:
    """A largest or an average value of windows."""
    x = g.find(lambda v: len(v.shape) == 4 and v.dtype in (FLOAT, "int8", "uint8", "int32"))
    if x is None:
        return False
    layout = g.one(["NHWC", "NHWC", "NCHW"])
    at = 1 if layout == "NHWC" else 2
    size = (g.between(1, min(3, x.shape[at])), g.between(1, min(3, x.shape[at + 1])))
    padding = g.one([(0, 0), (0, 0, 1, 1), (1, 1)]) if min(size) > 1 else (0, 0)
    options = {"strides": g.one([(1, 1), (2, 2), (1, 2)]), "padding": padding, "layout": layout}
    if g.chance(0.25):
        options["ceil_mode"] = True
    if x.is_float and g.chance(0.5):
        count = g.chance(0.5)
        return (
            g.emit(nn.avg_pool2d(x.var, size, count_include_pad=count, **options), x.bound)
            is not None
        )
    return g.emit(nn.max_pool2d(x.var, size, **options), x.bound) is not None


def pad(g: Growing) -> bool:
    """A border on any side of any axis."""
    x = g.find(lambda v: len(v.shape) > 0 and v.dtype != "bool")
    if x is None:
        return False
    mode = g.one(["constant", "constant", "constant", "reflect", "replicate", "circular"])
    width = [0] * (2 * len(x.shape))
    if g.chance(0.4):  # behind one axis only: TVM takes that for elementwise and fuses it
        width[2 * g.between(0, len(x.shape) - 1) + 1] = g.between(1, 4)
        return g.emit(nn.pad(x.var, width, "constant", g.one([0, 1])), x.bound + 1) is not None
    for _ in range(g.between(1, 3)):
        side = g.between(0, len(width) - 1)
        most = 4 if mode == "constant" else min(3, x.shape[side // 2] - 1)
        width[side] = g.between(0, most) if most > 0 else 0
    value = g.one([0, 0, 1, 7]) if mode == "constant" else 0
    return g.emit(nn.pad(x.var, width, mode, value), max(x.bound, value)) is not None


def concat(g: Growing) -> bool:
    """A value beside others that agree in all axes but one."""
    x = g.find(lambda v: len(v.shape) > 0)
    if x is None:
        return False
    axis = g.between(0, len(x.shape) - 1)

    def fits(v: Value) -> bool:
        same = [a == b for i, (a, b) in enumerate(zip(v.shape, x.shape, strict=True)) if i != axis]
        return all(same)

    others = [
        v for v in g.values if v.dtype == x.dtype and len(v.shape) == len(x.shape) and fits(v)
    ]
    parts = [x, *(g.one(others) for _ in range(g.between(1, 2)))]
    g.random.shuffle(parts)
    return g.emit(op.concat([p.var for p in parts], axis), max(p.bound for p in parts)) is not None


def split(g: Growing) -> bool:
    """Parts along an axis, cut anywhere; several of them may be used later."""
    x = g.find(lambda v: any(extent > 1 for extent in v.shape))
    if x is None:
        return False
    axis = g.one([i for i, extent in enumerate(x.shape) if extent > 1])
    cuts = sorted({g.between(1, x.shape[axis] - 1) for _ in range(g.between(1, 2))})
    parts = g.builder.emit(op.split(x.var, cuts, axis))
    for index in range(len(cuts) + 1):
        if index == 0 or g.chance(0.6):
            g.emit(relax.TupleGetItem(parts, index), x.bound)
    return True


def strided_slice(g: Growing) -> bool:
    """Every element, or each second or third one, of a range of an axis."""
    x = g.find(lambda v: any(extent > 1 for extent in v.shape))
    if x is None:
        return False
    axis = g.one([i for i, extent in enumerate(x.shape) if extent > 1])
    begin = g.between(0, x.shape[axis] - 1)
    end = g.between(begin + 1, x.shape[axis])
    expr = op.strided_slice(x.var, [axis], [begin], [end], [g.one([1, 1, 2, 3])])
    return g.emit(expr, x.bound) is not None


def reduction(g: Growing) -> bool:
    """A sum, mean, extreme or variance over some axes, or over all of them."""
    x = g.find(lambda v: v.dtype in (FLOAT, "int32", "int8") and v.elements > 0)
    if x is None:
        return False
    kinds = ["max", "min", "sum", "mean", "variance", "prod"] if x.is_float else ["max", "min"]
    if x.dtype == "int32" and x.bound * x.elements < MOST_INTEGER:
        kinds.append("sum")
    kind = g.one(kinds)
    rank = len(x.shape)
    axes: Any = sorted(g.random.sample(range(rank), g.between(1, rank))) if rank else None
    axes = None if g.chance(0.25) else axes
    expr = getattr(op, kind)(x.var, axes, keepdims=g.chance(0.5))
    return g.emit(expr, x.bound * (x.elements if kind == "sum" else 1)) is not None


def place_of_extreme(g: Growing) -> bool:
    """Where the largest or smallest element is."""
    x = g.find(lambda v: v.dtype in (FLOAT, "int32", "int8") and len(v.shape) > 0)
    if x is None:
        return False
    axis = None if g.chance(0.2) else g.between(0, len(x.shape) - 1)
    found = getattr(op, g.one(["argmax", "argmin"]))(x.var, axis, keepdims=g.chance(0.5))
    return g.emit(found, MOST_INTEGER) is not None


def softmax(g: Growing) -> bool:
    """A softmax, or its logarithm, along an axis."""
    x = g.find(lambda v: v.is_float and len(v.shape) > 0)
    if x is None:
        return False
    kind = g.one([nn.softmax, nn.softmax, nn.log_softmax])
    axis = g.one([-1, -1, g.between(0, len(x.shape) - 1)])
    return g.emit(kind(x.var, axis), 16) is not None


def norm(g: Growing) -> bool:
    """A normalisation of layers, or by the root of the mean square."""
    x = g.find(lambda v: v.is_float and len(v.shape) > 1)
    if x is None:
        return False
    count = g.between(1, min(2, len(x.shape) - 1))
    shape, axes = x.shape[-count:], list(range(-count, 0))
    if g.chance(0.4):
        return g.emit(nn.rms_norm(x.var, g.weight(shape, FLOAT, 1).var, axes), 16) is not None
    scale, shift = g.weight(shape, FLOAT, 1), g.weight(shape, FLOAT, 1)
    return g.emit(nn.layer_norm(x.var, scale.var, shift.var, axes), 16) is not None


def reshape(g: Growing) -> bool:
    """The same elements with other axes."""
    x = g.find(lambda v: v.elements > 0)
    if x is None:
        return False
    left, shape = x.elements, list[int]()
    while left > 1 and len(shape) < 3 and g.chance(0.7):
        part = g.one([d for d in range(1, left + 1) if left % d == 0])
        shape.append(part)
        left //= part
    shape = [*shape, left] if left > 1 or g.chance(0.8) or not shape else shape
    if g.chance(0.2) and x.elements == 1:
        shape = []
    return g.emit(op.reshape(x.var, shape), x.bound) is not None


def permute(g: Growing) -> bool:
    """The axes in another order."""
    x = g.find(lambda v: len(v.shape) > 1)
    if x is None:
        return False
    return (
        g.emit(op.permute_dims(x.var, g.random.sample(range(len(x.shape)), len(x.shape))), x.bound)
        is not None
    )


def resize(g: Growing) -> bool:
    """Another size of an image."""
    x = g.find(lambda v: len(v.shape) == 4 and v.is_float)
    if x is None:
        return False
    layout = g.one(["NHWC", "NCHW"])
    at = 1 if layout == "NHWC" else 2
    size = tuple(g.one([1, e, 2 * e, e + 3]) for e in x.shape[at : at + 2])
    method = g.one(["nearest_neighbor", "linear"])
    where = g.one(["asymmetric", "half_pixel"] + ["align_corners"] * (1 not in size))
    rounding = g.one(["floor", "round"])
    expr = op.image.resize2d(
        x.var,
        size,
        layout=layout,
        method=method,
        coordinate_transformation_mode=where,
        rounding_method=rounding,
    )
    return g.emit(expr, x.bound) is not None


def repeat(g: Growing) -> bool:
    """Elements, or all of the tensor, several times, or mirrored."""
    x = g.find(lambda v: len(v.shape) > 0)
    if x is None:
        return False
    axis = g.between(0, len(x.shape) - 1)
    expr = g.one(
        [
            lambda: op.repeat(x.var, g.between(1, 3), axis),
            lambda: op.tile(x.var, [g.between(1, 2) for _ in x.shape]),
            lambda: op.flip(x.var, axis),
            lambda: op.take(x.var, relax.const(np.array([0, x.shape[axis] - 1, 0], "int64")), axis),
        ]
    )()
    return g.emit(expr, x.bound) is not None


def chain(g: Growing) -> bool:
    """A sum or an extreme of windows, and what reads it: mostly one kernel."""
    if not g.one([conv2d, depthwise, matmul, pool, reduction])(g):
        return False
    usual, g.newest = g.newest, 1.0
    for _ in range(g.between(1, 3)):
        g.one([pad, pad, unary, binary, clip, strided_slice, concat, permute, repeat])(g)
    g.newest = usual
    return True


OPERATORS: tuple[Callable[[Growing], bool], ...] = (
    *(chain,) * 6,
    *(conv2d, conv2d, depthwise, matmul, pool, pad, pad, concat, split, strided_slice),
    *(reduction, reduction, place_of_extreme, softmax, norm, unary, unary, clip, binary, binary),
    *(compare, cast, requantise, requantise, reshape, permute, resize, repeat),
)
"""Each adds one operator to a graph; those named twice are drawn twice as often."""
