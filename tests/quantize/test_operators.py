"""Each operator in integers: bit-identical to LiteRT's reference kernels (SVDF: TFLM's)."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conformance.writer import Array, Node, T, tflite
from tests.quantize.running import Machine, assert_exact, integer_module, reference_of

RELU, RELU6, SAME, VALID = 1, 3, 0, 1


def weights(*shape: int, dtype: str = "int8", seed: int = 0) -> Array:
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min + 1, limits.max, shape, dtype)


def bias(count: int) -> Array:
    return np.random.default_rng(1).integers(-2000, 2000, count).astype(np.int32)


def scales(count: int) -> list[float]:
    return [0.002 + 0.0005 * (i % 7) for i in range(count)]


def weighted(kind: str, x: T, w: T, y: T, count: int, **options: Any) -> bytes:
    assert isinstance(x.scale, float)
    assert w.scale is not None
    product = np.float32(x.scale) * np.asarray(w.scale, np.float32)
    b = T((count,), "int32", product.tolist(), data=bias(count))
    return tflite([x, w, b, y], [Node(kind, [0, 1, 2], [3], options)], [0], [3])


def conv(x: T, w: T, y: T, stride: int = 1, padding: int = SAME, activation: int = 0) -> bytes:
    return weighted(
        "CONV_2D", x, w, y, w.shape[0], strideH=stride, strideW=stride, padding=padding,
        dilationHFactor=1, dilationWFactor=1, fusedActivationFunction=activation,
    )  # fmt: skip


def depthwise(x: T, w: T, y: T, multiplier: int) -> bytes:
    return weighted(
        "DEPTHWISE_CONV_2D", x, w, y, w.shape[3], strideH=2, strideW=2, padding=SAME,
        depthMultiplier=multiplier, dilationHFactor=1, dilationWFactor=1,
    )  # fmt: skip


def binary(kind: str, a: T, b: T, y: T) -> bytes:
    return tflite([a, b, y], [Node(kind, [0, 1], [2])], [0, 1], [2])


def unary(kind: str, x: T, y: T, **options: Any) -> bytes:
    return tflite([x, y], [Node(kind, [0], [1], options)], [0], [1])


def indexed(kind: str, x: T, index: list[Any], y: T, **options: Any) -> bytes:
    data = np.asarray(index, np.int32)
    constant = T(data.shape, "int32", data=data)
    return tflite([x, constant, y], [Node(kind, [0, 1], [2], options)], [0], [2])


def pool(kind: str, x: T, y: T, padding: int = SAME) -> bytes:
    sizes = {"filterHeight": 3, "filterWidth": 3, "strideH": 2, "strideW": 2}
    return unary(kind, x, y, padding=padding, **sizes)


def joined(y: T, *pieces: T) -> bytes:
    count = len(pieces)
    node = Node("CONCATENATION", list(range(count)), [count], {"axis": 3})
    return tflite([*pieces, y], [node], list(range(count)), [count])


IMAGE = T((1, 7, 6, 4), "int8", 0.05, 3)
OLD = T((1, 7, 6, 4), "uint8", 0.05, 120)
HALF = T((1, 4, 3, 4), "int8", 0.05, 3)

FILES = {
    "conv per channel": conv(
        IMAGE,
        T((6, 3, 3, 4), "int8", scales(6), data=weights(6, 3, 3, 4)),
        T((1, 7, 6, 6), "int8", 0.1, -5),
    ),
    "conv relu6 stride 2": conv(
        IMAGE,
        T((8, 3, 3, 4), "int8", scales(8), data=weights(8, 3, 3, 4)),
        T((1, 4, 3, 8), "int8", 6 / 255, -128),
        2,
        activation=RELU6,
    ),
    "conv valid relu": conv(
        IMAGE,
        T((5, 2, 3, 4), "int8", scales(5), data=weights(5, 2, 3, 4)),
        T((1, 6, 4, 5), "int8", 0.08, -60),
        padding=VALID,
        activation=RELU,
    ),
    "conv uint8 asymmetric weights": conv(
        OLD,
        T((8, 3, 3, 4), "uint8", 0.01, 131, data=weights(8, 3, 3, 4, dtype="uint8")),
        T((1, 7, 6, 8), "uint8", 0.2, 110),
    ),
    "depthwise": depthwise(
        IMAGE,
        T((1, 3, 3, 4), "int8", scales(4), data=weights(1, 3, 3, 4), axis=3),
        T((1, 4, 3, 4), "int8", 0.06, 9),
        1,
    ),
    "depthwise multiplier 3": depthwise(
        IMAGE,
        T((1, 3, 3, 12), "int8", scales(12), data=weights(1, 3, 3, 12), axis=3),
        T((1, 4, 3, 12), "int8", 0.06, 9),
        3,
    ),
    "depthwise uint8": depthwise(
        OLD,
        T((1, 3, 3, 4), "uint8", 0.01, 99, data=weights(1, 3, 3, 4, dtype="uint8")),
        T((1, 4, 3, 4), "uint8", 0.06, 128),
        1,
    ),
    "dense per channel": weighted(
        "FULLY_CONNECTED",
        T((2, 24), "int8", 0.04, -7),
        T((10, 24), "int8", scales(10), data=weights(10, 24)),
        T((2, 10), "int8", 0.1, 4),
        10,
    ),
    "dense uint8": weighted(
        "FULLY_CONNECTED",
        T((1, 24), "uint8", 0.04, 127),
        T((10, 24), "uint8", 0.01, 125, data=weights(10, 24, dtype="uint8")),
        T((1, 10), "uint8", 0.1, 130),
        10,
        fusedActivationFunction=RELU,
    ),
    "add": binary(
        "ADD", IMAGE, T((1, 7, 6, 4), "int8", 0.09, -20), T((1, 7, 6, 4), "int8", 0.1, 11)
    ),
    "add broadcast uint8": binary(
        "ADD", OLD, T((1, 1, 1, 4), "uint8", 0.02, 3), T((1, 7, 6, 4), "uint8", 0.1, 90)
    ),
    "sub": binary(
        "SUB", IMAGE, T((1, 7, 6, 4), "int8", 0.03, 15), T((1, 7, 6, 4), "int8", 0.07, -3)
    ),
    "mul": binary(
        "MUL", IMAGE, T((1, 7, 6, 4), "int8", 0.03, 15), T((1, 7, 6, 4), "int8", 0.2, -3)
    ),
    "concat equal": joined(
        T((1, 7, 6, 7), "int8", 0.05, 3), IMAGE, T((1, 7, 6, 3), "int8", 0.05, 3)
    ),
    "concat uint8 scales": joined(
        T((1, 7, 6, 7), "uint8", 0.07, 100), OLD, T((1, 7, 6, 3), "uint8", 0.03, 9)
    ),
    "average pool": pool("AVERAGE_POOL_2D", IMAGE, HALF),
    "average pool uint8": pool("AVERAGE_POOL_2D", OLD, T((1, 4, 3, 4), "uint8", 0.05, 120)),
    "max pool": pool("MAX_POOL_2D", IMAGE, HALF),
    "mean": indexed("MEAN", IMAGE, [1, 2], T((1, 1, 1, 4), "int8", 0.03, -4), keepDims=True),
    "pad": indexed(
        "PAD", IMAGE, [[0, 0], [1, 2], [0, 1], [0, 0]], T((1, 10, 7, 4), "int8", 0.05, 3)
    ),
    "transpose": indexed("TRANSPOSE", IMAGE, [0, 3, 1, 2], T((1, 4, 7, 6), "int8", 0.05, 3)),
    "resize nearest": indexed(
        "RESIZE_NEAREST_NEIGHBOR", IMAGE, [14, 12], T((1, 14, 12, 4), "int8", 0.05, 3)
    ),
    "softmax": unary(
        "SOFTMAX", T((3, 10), "int8", 0.1, 5), T((3, 10), "int8", 1 / 256, -128), beta=1.0
    ),
    "softmax uint8": unary(
        "SOFTMAX", T((3, 10), "uint8", 0.2, 5), T((3, 10), "uint8", 1 / 256, 0), beta=1.0
    ),
    "softmax 16 bits": unary(
        "SOFTMAX", T((3, 10), "int8", 0.1, 5), T((3, 10), "int16", 1 / 65536, -32768), beta=1.0
    ),
    "logistic": unary("LOGISTIC", IMAGE, T(IMAGE.shape, "int8", 1 / 256, -128)),
    "tanh": unary("TANH", IMAGE, T(IMAGE.shape, "int8", 1 / 128, 0)),
    "leaky relu": unary("LEAKY_RELU", IMAGE, T(IMAGE.shape, "int8", 0.04, -9), alpha=0.2),
    "hard swish": unary("HARD_SWISH", IMAGE, T(IMAGE.shape, "int8", 0.04, -100)),
    "requantise": unary("QUANTIZE", IMAGE, T(IMAGE.shape, "int8", 0.07, 20)),
    "requantise uint8": unary("QUANTIZE", OLD, T(IMAGE.shape, "int8", 0.05, -8)),
    "requantise 16 to 8": unary(
        "QUANTIZE", T((1, 9), "int16", 0.001, 0), T((1, 9), "int8", 0.2, 4)
    ),
    "requantise 16 to 32": unary(
        "QUANTIZE", T((1, 9), "int16", 0.001, -7), T((1, 9), "int32", 0.0003, 0)
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_an_operator_computes_what_the_reference_does(name: str, tmp_path: Path) -> None:
    assert_exact(FILES[name], integer_module(FILES[name], tmp_path))


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_an_svdf_keeps_its_state_as_the_reference_does(dtype: str, tmp_path: Path) -> None:
    wide = dtype == "int16"
    state = T((1, 40), dtype, 0.002 if wide else 0.4, 0 if wide else -11, variable=True)
    time = T(
        (8, 5),
        dtype,
        0.002 if wide else 0.02,
        data=weights(8, 5, dtype=dtype) // (9 if wide else 1),
    )
    tensors = [
        T((1, 12), "int8", 0.05, 2),
        T((8, 12), "int8", 0.01, data=weights(8, 12)),
        time,
        T((4,), "int32", 4e-6 if wide else 0.008, data=bias(4)),
        state,
        T((1, 4), "int8", 0.3, -128),
    ]
    node = Node("SVDF", [0, 1, 2, 3, 4], [5], {"rank": 2, "fusedActivationFunction": RELU})
    data = tflite(tensors, [node], [0], [5])
    reference, machine = reference_of(data), Machine(integer_module(data, tmp_path))
    seen = set()
    for step in range(12):
        inputs = reference.inputs(step)
        np.testing.assert_array_equal(
            machine.step(inputs)[0], wanted := reference.step(inputs).outputs[0]
        )
        seen.add(wanted.tobytes())
    assert len(seen) > 3
