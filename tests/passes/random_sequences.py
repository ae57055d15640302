"""Random networks on sequences ``[batch, channels, length]``, of numbers whose sums are exact."""

from typing import Any

from tvm import relax
from tvm.relax import op

from tests.passes.random_images import Draw, Step, bounded, shape_of


def convolution(draw: Draw, x: Any) -> Any:
    _, channels, length = shape_of(x)
    groups = draw.choice(1, 1, channels)
    outputs = draw.choice(2, 3, 4) * (channels if groups > 1 else 1)
    size = min(draw.choice(1, 2, 3), length)
    weights = draw.constant(outputs, channels // groups, size)
    padding = [draw.choice(0, 1, 2) for _ in range(2)]
    made = draw.emit(op.nn.conv1d(x, weights, draw.choice(1, 2), padding, 1, groups))
    if draw.random.random() < 0.5:
        made = draw.emit(op.add(made, draw.constant(outputs, 1)))
    return bounded(draw, made)


def spread(draw: Draw, x: Any) -> Any:
    _, channels, length = shape_of(x)
    size, stride = draw.choice(2, 3), draw.choice(1, 2)
    weights = draw.constant(channels, draw.choice(2, 3), size)
    padding = (draw.choice(0, 1) if length > 1 else 0, 0)
    more = draw.choice(0, stride - 1)
    return bounded(draw, draw.emit(op.nn.conv1d_transpose(x, weights, stride, padding, more)))


def pool(draw: Draw, x: Any) -> Any:
    kind = draw.choice(op.nn.max_pool1d, op.nn.avg_pool1d)
    return draw.emit(op.nn.relu(draw.emit(kind(x, 2, draw.choice(1, 2), (1, 0)))))


def summed(draw: Draw, x: Any) -> Any:
    _, channels, length = shape_of(x)
    shape = draw.choice((1, channels, 1), (channels, 1), (), (length,), (1, 1, length))
    kind = draw.choice(op.add, op.multiply, op.maximum, op.subtract)
    operands = draw.random.sample([x, draw.constant(*shape)], 2)
    return bounded(draw, draw.emit(kind(*operands)))


def joined(draw: Draw, x: Any) -> Any:
    other = draw.choice(x, draw.emit(op.nn.relu(x)), draw.constant(*shape_of(x)))
    return draw.emit(op.concat([x, other], draw.choice(1, 2, -1, -2)))


def parted(draw: Draw, x: Any) -> Any:
    axes = [axis for axis in (1, 2) if shape_of(x)[axis] > 1]
    if not axes:
        return x
    parts = draw.emit(op.split(x, [1], draw.choice(*axes)))
    return draw.emit(relax.TupleGetItem(parts, draw.choice(0, 1)))


def bordered(draw: Draw, x: Any) -> Any:
    return draw.emit(op.nn.pad(x, [0, 0, *(draw.choice(0, 1) for _ in range(4))], "constant", 1.0))


def averaged(draw: Draw, x: Any) -> Any:
    kind, axes = draw.choice(op.max, op.sum), draw.choice([2], [1], [-1], [1, 2])
    return bounded(draw, draw.emit(kind(x, axes, True)))


def turned(draw: Draw, x: Any) -> Any:
    return draw.emit(op.permute_dims(x, (0, 2, 1)))


def shaped_as_image(draw: Draw, x: Any) -> Any:
    """Read as another shape, and back."""
    _, channels, length = shape_of(x)
    return draw.emit(op.reshape(draw.emit(op.reshape(x, (1, channels * length))), shape_of(x)))


STEPS: tuple[Step, ...] = (
    convolution, convolution, convolution, spread, pool, summed, summed, joined, parted, bordered,
    averaged, turned, shaped_as_image,
)  # fmt: skip


def network(seed: int) -> Any:
    """Return a module of some ten operators, whose results are sequences and sums of them."""
    draw = Draw(seed)
    x = relax.Var("x", relax.TensorType((1, 3, 11), "float32"))
    with draw.builder.function("main", [x]):
        with draw.builder.dataflow():
            draw.images.append(convolution(draw, x))
            for _ in range(10):
                made = draw.choice(*STEPS)(draw, draw.choice(*draw.images[-3:]))
                if shape_of(made)[1] * shape_of(made)[2] <= 1024:
                    draw.images.append(made)
            total = draw.emit(op.sum(draw.images[-1], draw.choice([2], [1], [1, 2])))
            results = draw.builder.emit_output(relax.Tuple([*draw.images[-3:], total]))
        draw.builder.emit_func_output(results)
    return draw.builder.get()
