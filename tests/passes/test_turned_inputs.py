"""Images that kernels read in the order of the file: the same results, without the copy."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax

from tests.cases import sampled
from tests.passes.random_images import network
from tvm_serenity import compat
from tvm_serenity.memory import peak_bytes
from tvm_serenity.relax import turned_inputs as turning
from tvm_serenity.relax.bindings import bindings
from tvm_serenity.relax.pipeline import Planning, Steps, planned, prepared, prepared_for_host
from tvm_serenity.relax.read import read_function
from tvm_serenity.tvm_targets import native

SEEDS = 8


def result(mod: tvm.IRModule, x: Any) -> list[Any]:
    """What lowered kernels make of an image."""
    built = tvm.compile(planned(mod, Planning(), native()), native(), relax_pipeline=None)
    made = relax.VirtualMachine(built, tvm.cpu())["main"](tvm.runtime.tensor(x))
    return [np.asarray(p.numpy()) for p in (made if isinstance(made, Sequence) else [made])]


def convolution(channels: int, other_reader: bool = False) -> tvm.IRModule:
    """A network of one 3x3 convolution in NCHW, and perhaps of the image in another order."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, channels, 12, 12), "float32"))
    weights = np.random.default_rng(0).integers(-3, 4, (8, channels, 3, 3)).astype("float32")
    with builder.function("main", [x]):
        with builder.dataflow():
            made = builder.emit(relax.op.nn.conv2d(x, relax.const(weights), padding=(1, 1, 1, 1)))
            made = builder.emit(relax.op.mean(relax.op.nn.relu(made), [2, 3]))
            held = [builder.emit_output(made)]
            if other_reader:
                held.append(builder.emit_output(relax.op.permute_dims(x, (0, 2, 3, 1))))
        builder.emit_func_output(relax.Tuple(held) if other_reader else held[0])
    return builder.get()


def copies(mod: tvm.IRModule) -> int:
    """The kernels that only order the axes of a parameter anew."""
    main = mod["main"]
    return sum(
        turning._turns(mod, value) and compat.kernel_arguments(value)[0] in set(main.params)
        for _, value in bindings(main)
    )


@pytest.mark.parametrize("seed", sampled(range(SEEDS), 2))
def test_networks_compute_the_same_bit_for_bit(seed: int) -> None:
    module = network(seed)
    shape = compat.static_shape(module["main"].params[0].ty, "x")
    x = np.random.default_rng(seed).integers(-3, 4, shape).astype("float32")
    wanted = result(prepared(module, Steps(layout="last"), native()).kernels, x)
    plain = prepared(module, Steps(layout="last"), native()).plain
    made = turning.turned_inputs(plain)
    found = result(prepared(made, Steps(layout="given"), native()).kernels, x)
    for want, got in zip(wanted, found, strict=True):
        assert got.tobytes() == want.tobytes()


def test_a_convolution_reads_the_image_without_a_copy() -> None:
    module = convolution(3)
    plain = prepared(module, Steps(layout="last"), native()).plain
    assert copies(plain) == 1
    assert copies(turning.turned_inputs(plain)) == 0
    x = np.random.default_rng(0).integers(-3, 4, (1, 3, 12, 12)).astype("float32")
    found = prepared_for_host(module, Steps(), native())
    assert found.steps.layout == "last"
    given = prepared(module, Steps(layout="given"), native())
    needs = [peak_bytes(read_function(p.kernels).graph) for p in (found, given)]
    assert needs[0] <= needs[1]
    np.testing.assert_array_equal(result(found.kernels, x)[0], result(given.kernels, x)[0])


def test_a_copy_that_is_a_result_or_of_many_channels_stays() -> None:
    for module in (convolution(3, other_reader=True), convolution(turning.MOST_CHANNELS + 1)):
        plain = prepared(module, Steps(layout="last"), native()).plain
        assert copies(turning.turned_inputs(plain)) == 1
