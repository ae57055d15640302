"""Random networks on images in NCHW, of numbers whose sums are exact in float32."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import relax
from tvm.relax import op

Step = Callable[["Draw", Any], Any]


class Draw:
    """A network that is being drawn: its builder, its random numbers, and images made so far."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.array = np.random.default_rng(seed)
        self.builder = relax.BlockBuilder()
        self.images: list[Any] = []

    def emit(self, expr: Any) -> Any:
        return self.builder.emit(expr)

    def constant(self, *shape: int, dtype: str = "float32") -> Any:
        return relax.const(self.array.integers(-3, 4, shape).astype(dtype))

    def choice(self, *options: Any) -> Any:
        return self.random.choice(options)


def shape_of(x: Any) -> tuple[int, ...]:
    return tuple(int(v) for v in x.ty.shape.values)


def convolution(draw: Draw, x: Any) -> Any:
    _, channels, height, width = shape_of(x)
    groups = draw.choice(1, 1, channels)
    outputs = draw.choice(2, 3, 4) * (channels if groups > 1 else 1)
    size = min(draw.choice(1, 2, 3), height, width)
    padding = [draw.choice(0, 1, 2) for _ in range(4)]
    weights = draw.constant(outputs, channels // groups, size, size)
    strides = (draw.choice(1, 1, 2), draw.choice(1, 2))
    made = draw.emit(op.nn.conv2d(x, weights, strides, padding, 1, groups))
    if draw.random.random() < 0.5:
        bias = draw.emit(op.reshape(draw.constant(outputs), (1, outputs, 1, 1)))
        made = draw.emit(op.add(made, bias))
    return bounded(draw, made)


def spread(draw: Draw, x: Any) -> Any:
    """A transposed convolution."""
    _, channels, height, _ = shape_of(x)
    size, outputs = draw.choice(1, 2, 3), draw.choice(2, 3)
    weights = draw.constant(channels, outputs, size, draw.choice(1, 2))
    strides = (draw.choice(1, 2), draw.choice(1, 2))
    padding = (draw.choice(0, size - 1) if height > 1 else 0, 0, 0, 0)
    more = (draw.choice(0, strides[0] - 1), 0)
    return bounded(draw, draw.emit(op.nn.conv2d_transpose(x, weights, strides, padding, more)))


def doubled(draw: Draw, x: Any) -> Any:
    return draw.emit(op.repeat(x, 2, draw.choice(1, 2, 3)))


def bounded(draw: Draw, x: Any) -> Any:
    """Keep numbers small, so that sums stay exact."""
    return draw.emit(op.clip(x, -8, 8))


def pool(draw: Draw, x: Any) -> Any:
    kind = draw.choice(op.nn.max_pool2d, op.nn.avg_pool2d)
    return draw.emit(op.nn.relu(draw.emit(kind(x, (2, 2), (draw.choice(1, 2), 1), (1, 0, 0, 1)))))


def pooled(draw: Draw, x: Any) -> Any:
    return draw.emit(op.nn.adaptive_avg_pool2d(x, draw.choice((1, 1), (2, 1))))


def resized(draw: Draw, x: Any) -> Any:
    _, _, height, width = shape_of(x)
    size = (2 * height, draw.choice(1, 2) * width)
    coordinates = {"method": "nearest_neighbor", "coordinate_transformation_mode": "asymmetric"}
    return draw.emit(
        op.image.resize2d(x, size, layout="NCHW", rounding_method="floor", **coordinates)
    )


def summed(draw: Draw, x: Any) -> Any:
    """With another image, a constant that is broadcast, or itself turned upside down."""
    _, channels, _, width = shape_of(x)
    shape = draw.choice((1, channels, 1, 1), (channels, 1, 1), (), (1,), (width,), (1, 1, 1, width))
    alike = [image for image in draw.images if shape_of(image) == shape_of(x)]
    other = draw.choice(draw.constant(*shape), draw.emit(op.flip(x, draw.choice(1, 2, 3))), *alike)
    kind = draw.choice(op.add, op.multiply, op.maximum, op.subtract)
    return bounded(draw, draw.emit(kind(*draw.random.sample([x, other], 2))))


def joined(draw: Draw, x: Any) -> Any:
    other = draw.choice(x, draw.emit(op.nn.relu(x)), draw.constant(*shape_of(x)))
    return draw.emit(op.concat([x, other], draw.choice(1, 2, 3, -1, -3)))


def parted(draw: Draw, x: Any) -> Any:
    axes = [axis for axis in (1, 2, 3) if shape_of(x)[axis] > 1]
    if not axes:
        return x
    parts = draw.emit(op.split(x, [1], draw.choice(*axes)))
    return draw.emit(relax.TupleGetItem(parts, draw.choice(0, 1)))


def bordered(draw: Draw, x: Any) -> Any:
    return draw.emit(op.nn.pad(x, [0, 0, *(draw.choice(0, 1) for _ in range(6))], "constant", 1.0))


def averaged(draw: Draw, x: Any) -> Any:
    kind, axes = draw.choice(op.max, op.sum), draw.choice([2, 3], [1], [-1], [1, 2])
    return bounded(draw, draw.emit(kind(x, axes, True)))


def stored(draw: Draw, x: Any) -> Any:
    """Between integers and back, of one scale or one a channel."""
    channels = shape_of(x)[1]
    shape = draw.choice((), (channels,))
    scale = relax.const(np.full(shape, 0.5, np.float32))
    zero = relax.const(np.full(shape, 1, np.int8))
    axis = draw.choice(1, -3)
    held = draw.emit(op.quantize(x, scale, zero, axis, "int8"))
    return draw.emit(op.dequantize(held, scale, zero, axis, "float32"))


def turned(draw: Draw, x: Any) -> Any:
    axes = draw.choice((0, 2, 3, 1), (0, 3, 1, 2), (0, 1, 3, 2))
    return draw.emit(op.permute_dims(x, axes))


def reshaped(draw: Draw, x: Any) -> Any:
    _, channels, height, width = shape_of(x)
    return draw.emit(op.reshape(x, (1, height, channels, width)))


def shuffled(draw: Draw, x: Any) -> Any:
    """Channels in another order, as ShuffleNet does; sometimes with rows among them, or merged."""
    _, channels, height, width = shape_of(x)
    groups = draw.choice(*(g for g in (1, 2, 3, 4) if channels % g == 0))
    parts = (groups, channels // groups)
    image = draw.choice((height, width), (height * width,))
    apart = draw.emit(op.reshape(x, (1, *parts, *image)))
    axes = draw.choice((0, 2, 1, 3), (0, 2, 1, 3), (0, 1, 3, 2), (0, 3, 1, 2))
    if len(image) == 2:
        axes = (*axes, 4)
    return draw.emit(op.reshape(draw.emit(op.permute_dims(apart, axes)), shape_of(x)))


def normalised(draw: Draw, x: Any) -> Any:
    """Of a variance of one, so that results are exact; the mean goes on as a result at times."""
    channels = shape_of(x)[1]
    gamma, beta, mean = (draw.constant(channels) for _ in range(3))
    one = relax.const(np.ones(channels, np.float32))
    made = draw.emit(op.nn.batch_norm(x, gamma, beta, mean, one, 1, 0.0, training=False))
    image = draw.emit(relax.TupleGetItem(made, 0))
    if draw.random.random() < 0.3:
        told = draw.emit(op.reshape(draw.emit(relax.TupleGetItem(made, 1)), (1, channels, 1, 1)))
        image = draw.emit(op.add(image, told))
    return bounded(draw, image)


def sliced(draw: Draw, x: Any) -> Any:
    return draw.emit(op.strided_slice(x, [3], [0], [max(1, shape_of(x)[3] - 1)]))


STEPS: tuple[Step, ...] = (
    convolution, convolution, convolution, pool, pooled, resized, summed, summed, joined, parted,
    bordered, averaged, stored, turned, reshaped, sliced, shuffled, shuffled, normalised,
    spread, doubled,
)  # fmt: skip


def network(seed: int) -> Any:
    """Return a module of some twelve operators, whose results are images and sums of them."""
    draw = Draw(seed)
    x = relax.Var("x", relax.TensorType((1, 3, 7, 6), "float32"))
    with draw.builder.function("main", [x]):
        with draw.builder.dataflow():
            draw.images.append(convolution(draw, x))
            for _ in range(12):
                made = draw.choice(*STEPS)(draw, draw.choice(*draw.images[-3:]))
                if np.prod(shape_of(made)) <= 4096:
                    draw.images.append(made)
            last = draw.images[-1]
            total = draw.emit(op.sum(last, draw.choice([2, 3], [1], [1, 2, 3])))
            results = draw.builder.emit_output(relax.Tuple([*draw.images[-3:], total]))
        draw.builder.emit_func_output(results)
    return draw.builder.get()
