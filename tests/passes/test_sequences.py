"""Sequences as images: what they compute, and that rows of them save memory."""

from typing import Any

import numpy as np
import pytest
from tvm import relax
from tvm.relax import op

from tests.cases import sampled, scaled
from tests.passes import random_sequences
from tests.passes.test_channels_last import calls, results
from tvm_serenity import compat
from tvm_serenity.memory import peak_bytes
from tvm_serenity.passes import SerenityChannelsLast
from tvm_serenity.relax.pipeline import Steps, prepared
from tvm_serenity.relax.read import module_graph

SEEDS = scaled(4, 12)
ONE_AXIS = [f"relax.nn.{name}1d" for name in ("conv", "max_pool", "avg_pool")]


def differs(seed: int) -> str | None:
    """How the network of a seed differs in NHWC from the one as given, run by stock TVM."""
    module = random_sequences.network(seed)
    made = SerenityChannelsLast()(module)
    if calls(made, *ONE_AXIS, "relax.nn.conv1d_transpose"):
        return "a layer of one axis is left"
    shape = compat.static_shape(module["main"].params[0].ty, "x")
    x = np.random.default_rng(seed).integers(-3, 4, shape).astype("float32")
    for index, (want, got) in enumerate(zip(results(module, [x]), results(made, [x]), strict=True)):
        if want.shape != got.shape or not np.allclose(got, want, rtol=0, atol=1e-5):
            return f"result {index}: {got.shape} and {want.shape}, or other numbers"
    return None


@pytest.mark.parametrize("seed", sampled(range(SEEDS), 2))
def test_it_computes_the_same(seed: int) -> None:
    assert differs(seed) is None


def layers(builder: relax.BlockBuilder, x: Any) -> Any:
    """A convolution to many channels, a transposed one, a split, and one to few."""
    rng = np.random.default_rng(4)

    def stored(*shape: int) -> Any:
        return relax.const(rng.integers(-3, 4, shape).astype("float32"))

    image = len(x.ty.shape) == 4
    rest = (3, 3) if image else (3,)
    conv, back = (
        (op.nn.conv2d, op.nn.conv2d_transpose) if image else (op.nn.conv1d, op.nn.conv1d_transpose)
    )
    wide = builder.emit(op.nn.relu(builder.emit(conv(x, stored(16, 2, *rest), padding=1))))
    spread = builder.emit(back(wide, stored(16, 8, *rest), strides=2))
    parts = builder.emit(op.split(spread, 2, 1))
    first, second = (builder.emit(relax.TupleGetItem(parts, i)) for i in (0, 1))
    joined = builder.emit(op.concat([builder.emit(op.nn.relu(first)), second], 1))
    doubled = builder.emit(op.repeat(joined, 2, 2)) if image else joined
    return builder.emit(op.sum(builder.emit(conv(doubled, stored(2, 8, *rest))), [1]))


@pytest.mark.parametrize("shape", [(1, 2, 5, 5), (1, 2, 14)])
def test_rows_of_transposed_convolutions_and_splits_save_memory(shape: tuple[int, ...]) -> None:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(shape, "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            out = builder.emit_output(layers(builder, x))
        builder.emit_func_output(out)
    module = builder.get()
    made = prepared(module, Steps(rows=True, time_limit_s=1.0), "llvm")
    assert made.rows is not None
    whole = prepared(module, Steps(layout="last"), "llvm").kernels
    assert made.rows.arena_bytes * 3 < 2 * peak_bytes(module_graph(whole, "whole"))
    data = np.random.default_rng(1).integers(-3, 4, shape).astype("float32")
    (want,), (got,) = results(module, [data]), results(made.kernels, [data])
    np.testing.assert_array_equal(got, want)
