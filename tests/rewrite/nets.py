"""Random networks of the operators the rules are about, and small ones for single rules."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import relax
from tvm.relax import op

SIZE = 6


class Writer:
    """Appends operators; ``layout`` NCHW or NHWC, ``dtype`` float32 or int8."""

    def __init__(self, builder: Any, layout: str, dtype: str, seed: int) -> None:
        self.builder, self.layout, self.dtype = builder, layout, dtype
        self.rng = np.random.default_rng(seed)
        self.axis = layout.index("C")

    def channels(self, x: Any) -> int:
        return int(x.ty.shape.values[self.axis])

    def const(self, shape: tuple[int, ...], dtype: str) -> Any:
        if dtype == "float32":
            return relax.const(self.rng.standard_normal(shape).astype(dtype))
        return relax.const(self.rng.integers(-9, 9, shape).astype(dtype))

    def emit(self, call: Any) -> Any:
        return self.builder.emit(call)

    def conv(
        self,
        x: Any,
        channels: int,
        kernel: int = 1,
        groups: int = 1,
        *,
        relu: bool = True,
        dilation: int = 1,
    ) -> Any:
        shape = (channels, self.channels(x) // groups, kernel, kernel)
        weight = self.const(shape, self.dtype)
        if self.layout == "NHWC":
            weight = relax.const(np.transpose(weight.value.numpy(), (2, 3, 1, 0)).copy())
        sums = "float32" if self.dtype == "float32" else "int32"
        y = self.emit(
            op.nn.conv2d(
                x,
                weight,
                padding=kernel // 2 * dilation,
                dilation=dilation,
                groups=groups,
                data_layout=self.layout,
                kernel_layout="OIHW" if self.layout == "NCHW" else "HWIO",
                out_dtype=sums,
            )
        )
        bias = (channels, 1, 1) if self.layout == "NCHW" else (channels,)
        y = self.emit(op.add(y, self.const(bias, sums)))
        if self.dtype == "float32":
            return self.emit(op.nn.relu(y)) if relu else y
        return self.narrow(y)

    def narrow(self, y: Any) -> Any:
        y = self.emit(op.right_shift(y, relax.const(3, "int32")))
        return self.emit(op.astype(self.emit(op.clip(y, -128, 127)), "int8"))

    def depthwise(self, x: Any) -> Any:
        count = self.channels(x)
        return self.conv(x, count, 3, count)

    def pool(self, x: Any) -> Any:
        return self.emit(op.nn.max_pool2d(x, (3, 3), padding=1, layout=self.layout))

    def relu(self, x: Any) -> Any:
        return self.emit(op.nn.relu(x))

    def concat(self, xs: list[Any]) -> Any:
        return self.emit(op.concat(xs, axis=self.axis))

    def add(self, x: Any, y: Any) -> Any:
        if self.dtype == "float32":
            return self.emit(op.add(x, y))
        wide = [self.emit(op.astype(v, "int32")) for v in (x, y)]
        return self.narrow(self.emit(op.add(*wide)))


Body = Callable[[Writer, Any], Any]


def module(
    body: Body, layout: str = "NCHW", dtype: str = "float32", channels: int = 4, seed: int = 0
) -> Any:
    """Return a module whose ``main`` takes one tensor and returns what ``body`` does."""
    extent = {"N": 1, "C": channels, "H": SIZE, "W": SIZE}
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType([extent[a] for a in layout], dtype))
    with builder.function("main", [x]):
        with builder.dataflow():
            found = body(Writer(builder, layout, dtype, seed), x)
            result = builder.emit_output(found)
        builder.emit_func_output(result)
    return relax.transform.CanonicalizeBindings()(builder.get())


def random_body(seed: int, most: int = 12) -> Body:
    """Return a seeded network of up to ``most`` operators."""

    def body(w: Writer, x: Any) -> Any:
        rng = random.Random(seed)
        values = [x]
        for _ in range(rng.randint(3, most - 1)):
            values.append(_random_op(w, rng, values))
        return values[-1]

    return body


def _random_op(w: Writer, rng: random.Random, values: list[Any]) -> Any:
    kind = rng.choice(("conv", "conv", "concat", "concat", "depthwise", "pool", "relu", "add"))
    x = rng.choice(values[-4:])
    if kind == "concat":
        parts = [rng.choice(values[-5:]) for _ in range(rng.randint(2, 3))]
        if sum(map(w.channels, parts)) <= 24:
            return w.concat(parts)
        kind = "conv"
    if kind == "add":
        same = [v for v in values if w.channels(v) == w.channels(x) and not v.same_as(x)]
        if same:
            return w.add(x, rng.choice(same))
        kind = "conv"
    if kind == "depthwise":
        return w.depthwise(x)
    if kind == "pool":
        return w.pool(x)
    if kind == "relu":
        return w.relu(x)
    return w.conv(x, rng.choice((2, 4)), rng.choice((1, 3)), relu=rng.random() < 0.6)


def branches(w: Writer, x: Any) -> Any:
    """Four branches, joined, into one convolution."""
    return w.conv(w.concat([w.conv(x, 4, seed_kernel) for seed_kernel in (1, 3, 1, 3)]), 4)


def residual(w: Writer, x: Any) -> Any:
    """A sum of two convolutions without activations, one of them of a concat."""
    left = w.conv(x, 6, relu=False)
    joined = w.concat([w.conv(x, 5, 3), w.conv(x, 5)])
    return w.relu(w.add(left, w.conv(joined, 6, relu=False)))


def depthwise(w: Writer, x: Any) -> Any:
    """A depthwise convolution, a pooling and a relu of a concat."""
    joined = w.concat([w.conv(x, 6, 3), w.conv(x, 6)])
    return w.conv(w.relu(w.pool(w.depthwise(joined))), 3)


def grouped(w: Writer, x: Any) -> Any:
    """A grouped convolution whose groups are the pieces of a concat."""
    joined = w.concat([w.conv(x, 4, 3), w.conv(x, 4), w.conv(x, 8)])
    return w.conv(joined, 8, 3, groups=4)


def misaligned(w: Writer, x: Any) -> Any:
    """A grouped convolution whose groups are cut by the pieces."""
    return w.conv(w.concat([w.conv(x, 3, 3), w.conv(x, 5)]), 8, groups=2)


def nested(w: Writer, x: Any) -> Any:
    """A concat of concats with several consumers."""
    a, b, c = w.conv(x, 4), w.conv(x, 4, 3), w.conv(x, 6)
    inner = w.concat([a, b])
    outer = w.concat([inner, c])
    return w.add(w.conv(outer, 4, 3), w.conv(inner, 4))


def dilated(w: Writer, x: Any) -> Any:
    """A dilated convolution of a concat, the concat being the result's part too."""
    joined = w.concat([w.conv(x, 4, 3), w.conv(x, 4)])
    return w.concat([w.conv(joined, 4, 3, dilation=2), joined])


def shuffled(w: Writer, x: Any) -> Any:
    """A split in three unequal parts, as in ShuffleNet: one goes round the convolutions."""
    parts = w.emit(op.split(w.conv(x, 12, 3), [3, 8], w.axis))
    first, second, third = (w.emit(relax.TupleGetItem(parts, i)) for i in range(3))
    return w.add(w.conv(w.relu(second), 4), w.conv(w.pool(w.concat([first, third])), 4))


def shortcut(w: Writer, x: Any) -> Any:
    """A shortcut around two branches that are joined, as in GhostNet."""
    x = w.conv(x, 8)
    return w.conv(w.add(w.concat([w.conv(x, 4, 3), w.conv(x, 4)]), x), 2)


def mixed(w: Writer, x: Any) -> Any:
    """A shortcut around four branches; a depthwise convolution is between it and the next one."""
    x = w.conv(x, 12)
    joined = w.concat([w.conv(x, 3, kernel) for kernel in (3, 1, 3, 1)])
    return w.conv(w.depthwise(w.add(joined, x)), 2)


def uneven(w: Writer, x: Any) -> Any:
    """A sum of two concats that are cut at different channels."""
    left = w.concat([w.conv(x, 2), w.conv(x, 6)])
    return w.conv(w.add(left, w.concat([w.conv(x, 4), w.conv(x, 4, 3)])), 2)


def paired(w: Writer, x: Any) -> Any:
    """A sum of two concats that are cut at the same channels."""
    left = w.concat([w.conv(x, 2), w.conv(x, 6)])
    return w.conv(w.add(left, w.concat([w.conv(x, 2, 3), w.conv(x, 6, 3)])), 2)


def crossed(w: Writer, x: Any) -> Any:
    """A sum of two concats, one along the channels and one along the rows."""
    rows = w.layout.index("H")
    left = w.concat([w.conv(x, 4), w.conv(x, 4, 3)])
    halves = [
        w.emit(op.strided_slice(w.conv(x, 8), [rows], [at], [at + SIZE // 2]))
        for at in (0, SIZE // 2)
    ]
    return w.conv(w.add(left, w.emit(op.concat(halves, axis=rows))), 2)


def stacked(w: Writer, x: Any) -> Any:
    """A pooling, and a convolution, of a concat along the rows."""
    rows = w.layout.index("H")
    joined = w.emit(op.concat([w.conv(x, 4, 3), w.conv(x, 4)], axis=rows))
    return w.add(w.conv(w.pool(joined), 2), w.conv(joined, 2))


NETS: dict[str, Body] = {
    "branches": branches,
    "residual": residual,
    "depthwise": depthwise,
    "grouped": grouped,
    "misaligned": misaligned,
    "nested": nested,
    "dilated": dilated,
    "shortcut": shortcut,
    "mixed": mixed,
    "uneven": uneven,
    "paired": paired,
    "crossed": crossed,
    "stacked": stacked,
}
