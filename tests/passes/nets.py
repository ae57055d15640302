"""Small Relax networks with every shape of dataflow the passes must keep apart."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.relax import op

Body = Callable[[Any, Any], Any]


def module(shape: tuple[int, ...], body: Body, dtype: str = "float32") -> Any:
    """Return a module whose ``main`` takes one tensor; ``body(builder, x)`` returns its result."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(shape, dtype))
    with builder.function("main", [x]):
        with builder.dataflow():
            result = builder.emit_output(body(builder, x))
        builder.emit_func_output(result)
    return builder.get()


def weight(*shape: int, seed: int = 0) -> Any:
    """Return a seeded float32 constant."""
    return relax.const(np.random.default_rng(seed).standard_normal(shape).astype("float32"))


def conv(builder: Any, x: Any, outputs: int, size: int = 1, seed: int = 0, stride: int = 1) -> Any:
    """Return relu(conv2d(x) + bias) with SAME padding, NCHW."""
    channels = int(x.ty.shape.values[1])
    kernel = weight(outputs, channels, size, size, seed=seed)
    y = builder.emit(op.nn.conv2d(x, kernel, strides=stride, padding=size // 2))
    y = builder.emit(op.add(y, weight(1, outputs, 1, 1, seed=seed + 1)))
    return builder.emit(op.nn.relu(y))


def branches(builder: Any, x: Any) -> Any:
    """Four wide branches, each reduced, joined: the order decides the memory."""
    wide = [conv(builder, x, 64, 3, seed=i) for i in range(4)]
    narrow = [conv(builder, w, 4, seed=9 + i) for i, w in enumerate(wide)]
    return conv(builder, builder.emit(op.concat(narrow, axis=1)), 16, 3, seed=20)


def residual(builder: Any, x: Any) -> Any:
    """A block with a skip connection, then a pool, a reshape and a dense layer with softmax."""
    y = conv(builder, conv(builder, x, 8, 3), 8, 3, seed=2)
    y = builder.emit(op.add(y, conv(builder, x, 8, 1, seed=4)))
    y = builder.emit(op.nn.max_pool2d(y, (2, 2), (2, 2)))
    y = builder.emit(op.reshape(y, (1, int(np.prod([int(s) for s in y.ty.shape.values])))))
    y = builder.emit(op.matmul(y, weight(int(y.ty.shape.values[1]), 10, seed=6)))
    return builder.emit(op.nn.softmax(y))


def tuples(builder: Any, x: Any) -> Any:
    """An op with several results, one of them unused, and a tuple as the result."""
    parts = builder.emit(op.split(x, 4, axis=1))
    first = builder.emit(relax.TupleGetItem(parts, 0))
    third = builder.emit(relax.TupleGetItem(parts, 2))
    a = conv(builder, first, 6, 3)
    b = builder.emit(op.concat([a, third], axis=1))
    return builder.emit(relax.Tuple([conv(builder, b, 4), a]))


def twins(builder: Any, x: Any) -> Any:
    """Branches of equal shape and weights: kernels and variable names repeat."""
    y = x
    for _ in range(3):
        y = builder.emit(op.add(conv(builder, y, 16, 3), conv(builder, y, 16, 3)))
    return y


def views(builder: Any, x: Any) -> Any:
    """Reshapes in the middle and at the end."""
    y = conv(builder, x, 8, 3)
    flat = builder.emit(op.reshape(y, (1, 8, -1)))
    summed = builder.emit(op.sum(flat, axis=[1]))
    z = builder.emit(op.multiply(y, builder.emit(op.reshape(summed, (1, 1, 16, 16)))))
    return builder.emit(op.reshape(z, (8, 256)))


NETS: dict[str, Body] = {
    "branches": branches,
    "residual": residual,
    "tuples": tuples,
    "twins": twins,
    "views": views,
}


def build(name: str) -> Any:
    """Return one of ``NETS``."""
    return module((1, 16, 16, 16), NETS[name])


def symbolic() -> Any:
    """Return a module whose batch is a symbol."""
    batch = tvm.tirx.Var("n", "int64")
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((batch, 4), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            result = builder.emit_output(op.nn.relu(x))
        builder.emit_func_output(result)
    return builder.get()
