"""What records of kernels mean in exact integers is what TVM's kernels of them compute."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")

from tests.cases import cases
from tests.kernels.convolutions import computed
from tvm_serenity.firmware.check.exact import meaning
from tvm_serenity.kernels import convolution as windows
from tvm_serenity.kernels import pointwise, pooling
from tvm_serenity.kernels.records import (
    AveragePool,
    Convolution,
    Dense,
    Lookup,
    Mean,
    Pair,
    Product,
    Requantise,
)
from tvm_serenity.operators.add import sum_of
from tvm_serenity.quantize.fixed import multiplier
from tvm_serenity.quantize.params import Affine

Rng = np.random.Generator


def finish(rng: Rng, channels: int, dtype: str, rounding: str) -> Requantise:
    """How sums become values: one multiplier, or one a channel."""
    count = channels if rng.random() < 0.7 else 1
    limits = np.iinfo(dtype)
    zero = 0 if dtype == "int16" else int(rng.integers(limits.min, limits.max + 1))
    scales = rng.uniform(2e-4, 2e-2, count) * (0.01 if dtype == "int16" else 1)
    made = multiplier(np.broadcast_to(scales, channels).tolist())
    low = int(limits.min) if rng.random() < 0.5 else zero
    return Requantise(made, zero, low, int(limits.max), dtype, rounding)


def weighed(rng: Rng, dtype: str) -> tuple[str, str]:
    """The rounding of a layer and the type of its weights."""
    if dtype == "int16":
        return "wide", "int8"
    return str(rng.choice(["tflite", "single", "double"])), "uint8" if dtype == "uint8" else "int8"


def drawn_convolution(rng: Rng) -> tuple[Any, Any]:
    dtype = str(rng.choice(["int8", "uint8", "int16"]))
    rounding, weight_dtype = weighed(rng, dtype)
    kind = rng.choice(["dense", "depthwise", "grouped"])
    layout = str(rng.choice(["NHWC", "NCHW"]))
    pieces = [4, 3] if kind == "dense" and rng.random() < 0.5 else [4]
    inputs, kh, kw = sum(pieces), *(int(n) for n in rng.integers(1, 4, 2))
    top, left, bottom, right = (int(p) for p in rng.integers(0, 3, 4))
    channels = inputs * 2 if kind == "depthwise" else 6
    shape: tuple[int, ...] = (kh, kw, inputs, channels)
    if kind != "dense":
        shape = (kh, kw, channels) if kind == "depthwise" else (kh, kw, inputs // 2, channels)
    spec = Convolution(
        layout=layout,
        pieces=tuple((1, 9, 8, c) if layout == "NHWC" else (1, c, 9, 8) for c in pieces),
        dtype=dtype,
        weight_shape=shape,
        weight_dtype=weight_dtype,
        strides=(int(rng.integers(1, 3)), int(rng.integers(1, 3))),
        padding=(top, left, bottom, right),
        dilation=(int(rng.integers(1, 3)), int(rng.integers(1, 3))),
        groups={"dense": 1, "depthwise": inputs, "grouped": 2}[str(kind)],
        input_zero=0 if dtype == "int16" else int(rng.integers(0, 100)),
        weight_zero=7 if weight_dtype == "uint8" else 0,
        requantise=finish(rng, channels, dtype, rounding),
    )
    return spec, windows.convolution(spec)


def drawn_dense(rng: Rng) -> tuple[Any, Any]:
    dtype = str(rng.choice(["int8", "uint8", "int16"]))
    rounding, weight_dtype = weighed(rng, dtype)
    made = finish(rng, 5, dtype, rounding)
    spec = Dense(3, 11, 5, dtype, weight_dtype, 9 if weight_dtype == "uint8" else 0, made)
    return spec, windows.dense(spec)


def drawn_pool(rng: Rng) -> tuple[Any, Any]:
    dtype, layout = str(rng.choice(["int8", "uint8", "int16"])), str(rng.choice(["NHWC", "NCHW"]))
    top, left = (int(p) for p in rng.integers(0, 2, 2))
    made = ((7 + top - 3) // 2 + 1, (6 + left - 2) // 2 + 1)
    first = layout == "NCHW"
    limits = np.iinfo(dtype)
    spec = AveragePool(
        layout=layout,
        shape=(1, 3, 7, 6) if first else (1, 7, 6, 3),
        output_shape=(1, 3, *made) if first else (1, *made, 3),
        dtype=dtype,
        window=(3, 2),
        strides=(2, 2),
        padding=(top, left, 0, 0),
        low=int(limits.min),
        high=int(limits.max),
        zero_point=0,
    )
    return spec, pooling.average_pool(spec)


def drawn_mean(rng: Rng) -> tuple[Any, Any]:
    keep, axes = bool(rng.integers(0, 2)), (1, 2) if rng.random() < 0.5 else (2,)
    made = finish(rng, 1, "int8", str(rng.choice(["tflite", "single"])))
    spec = Mean((1, 4, 5, 3), axes, keep, "int8", int(rng.integers(-128, 128)), made)
    return spec, pooling.mean(spec)


def drawn_pair(rng: Rng) -> tuple[Any, Any]:
    dtype = str(rng.choice(["int8", "uint8"]))
    low = int(np.iinfo(dtype).min)
    known = [
        Affine((float(rng.uniform(0.01, 0.2)),), (int(rng.integers(low, low + 256)),), dtype)
        for _ in range(3)
    ]
    shapes = ((1, 4, 3), (1, 4, 3) if rng.random() < 0.5 else (1, 1, 3))
    pair = Pair(shapes, (known[0], known[1]), known[2], low, low + 255)
    if rng.random() < 0.5:
        spec = sum_of(pair, bool(rng.integers(0, 2)))
        return spec, pointwise.add(spec)
    real = known[0].scale * known[1].scale / known[2].scale
    return (product := Product(pair, multiplier(real))), pointwise.multiply(product)


def drawn_lookup(_rng: Rng) -> tuple[Any, Any]:
    return Lookup((5, 60), "int8", "uint8"), pointwise.lookup((5, 60), "int8", "uint8")


DRAWS = [drawn_convolution, drawn_dense, drawn_pool, drawn_mean, drawn_pair, drawn_lookup]


def arguments(rng: Rng, spec: Any, kernel: Any) -> list[Any]:
    """Arguments of any value, biases and multipliers as the record has them."""
    from tvm_serenity import compat

    held = dict(zip(("m0", "m1"), finishing(spec), strict=False))
    made = []
    for param in kernel.params:
        if str(param.name) in held:
            made.append(np.asarray(held[str(param.name)]))
            continue
        shape, dtype = compat.buffer_shape(param), str(compat.buffer_dtype(param))
        limits = np.iinfo(dtype)
        low, high = (-999, 999) if dtype == "int32" else (limits.min, limits.max)
        made.append(rng.integers(low, high, shape, dtype, endpoint=True))
    return made


def finishing(spec: Any) -> tuple[Any, ...]:
    requantise = getattr(spec, "requantise", None)
    return () if requantise is None else tuple(requantise.arrays())


@pytest.mark.parametrize("seed", cases(40, most=600))
def test_records_mean_what_kernels_compute(seed: int) -> None:
    rng = np.random.default_rng(seed)
    spec, kernel = DRAWS[seed % len(DRAWS)](rng)
    given = arguments(rng, spec, kernel)
    means = meaning(spec, given[:-1])
    assert means is not None
    np.testing.assert_array_equal(means, computed(kernel, given))


def test_roundings_of_floats_have_no_meaning_in_integers() -> None:
    rng = np.random.default_rng(0)
    spec, kernel = drawn_dense(rng)
    floats = replace(spec, requantise=replace(spec.requantise, rounding="float"))
    assert meaning(floats, arguments(rng, spec, kernel)[:-1]) is None
    assert meaning(None, []) is None
