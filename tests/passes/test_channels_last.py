"""Channels last: what is turned, what is left, and results against stock TVM's as given."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.relax import op

from tests.cases import sampled
from tests.llvm import TARGET
from tests.passes import nets
from tests.passes.random_images import network
from tvm_serenity import compat
from tvm_serenity.passes import SerenityChannelsLast
from tvm_serenity.relax import channels_last as turning

SEEDS = 6
WEIGHTS_OF_UNIT = ((8, 8, 1, 1), (4, 1, 3, 3))


def results(module: Any, inputs: Sequence[Any]) -> list[Any]:
    machine = relax.VirtualMachine(tvm.compile(module, target=TARGET), tvm.cpu())
    made = machine["main"](*(tvm.runtime.tensor(x) for x in inputs))
    return [part.numpy() for part in (made if isinstance(made, Sequence) else [made])]


def calls(module: Any, *names: str) -> list[Any]:
    return [
        binding.value
        for block in module["main"].body.blocks
        for binding in block.bindings
        if compat.is_call(binding.value) and compat.op_name(binding.value) in names
    ]


def differs(seed: int) -> str | None:
    """How the turned network of a seed differs from the one as given, run by stock TVM."""
    module = network(seed)
    made = SerenityChannelsLast()(module)
    convolutions = calls(made, "relax.nn.conv2d")
    if any(str(call.attrs.data_layout) != "NHWC" for call in convolutions):
        return "a convolution is not turned"
    shape = compat.static_shape(module["main"].params[0].ty, "x")
    x = np.random.default_rng(seed).integers(-3, 4, shape).astype("float32")
    pairs = zip(results(module, [x]), results(made, [x]), strict=True)
    for index, (want, got) in enumerate(pairs):
        if want.shape != got.shape:
            return f"result {index}: shape {got.shape}, not {want.shape}"
        if not np.allclose(got, want, rtol=0, atol=1e-5):
            return f"result {index}: {np.abs(got - want).max()} apart"
    return None


@pytest.mark.parametrize("seed", sampled(range(SEEDS), 3))
def test_it_computes_the_same(seed: int) -> None:
    assert differs(seed) is None


def test_wrong_axes_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turning, "TO_LAST", (0, 3, 2, 1))
    found = []
    for seed in range(4):
        try:
            found.append(differs(seed))
        except Exception as error:  # shapes that do not fit
            found.append(str(error))
    assert any(found)


def test_a_chain_of_layers_is_turned_once() -> None:
    def body(builder: Any, x: Any) -> Any:
        y = nets.conv(builder, x, 8, 3)
        y = builder.emit(op.concat([y, nets.conv(builder, y, 4, 1)], axis=1))
        y = builder.emit(op.nn.max_pool2d(y, (2, 2), (2, 2)))
        return builder.emit(op.mean(nets.conv(builder, y, 5, 3), [2, 3]))

    made = SerenityChannelsLast()(nets.module((1, 3, 8, 8), body))
    (once,) = [c for c in calls(made, "relax.permute_dims") if not compat.is_constant(c.args[0])]
    assert once.args[0].same_as(made["main"].params[0])
    (mean,) = calls(made, "relax.mean")
    assert [int(a) for a in mean.attrs.axis] == [1, 2]


def test_what_moves_axes_of_one_element_is_a_reshape() -> None:
    made = SerenityChannelsLast()(nets.module((1, 1, 8, 8), lambda b, x: nets.conv(b, x, 3, 3)))
    moved = [c for c in calls(made, "relax.permute_dims") if not compat.is_constant(c.args[0])]
    assert len(moved) == 1  # of the result
    assert compat.static_shape(made["main"].body.body.ty, "result") == (1, 3, 8, 8)


def test_a_transpose_of_the_file_is_taken_back() -> None:
    def body(builder: Any, x: Any) -> Any:
        y = nets.conv(builder, builder.emit(op.permute_dims(x, [0, 3, 1, 2])), 4, 3)
        return builder.emit(op.permute_dims(y, [0, 2, 3, 1]))

    made = SerenityChannelsLast()(nets.module((1, 8, 8, 3), body))
    assert not [c for c in calls(made, "relax.permute_dims") if not compat.is_constant(c.args[0])]


def test_a_unit_of_shufflenet_stays_turned() -> None:
    """Two branches of a split are joined and shuffled: axes move at the ends alone."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 8, 6, 5), "float32"))
    rng = np.random.default_rng(3)
    weights = [relax.const(rng.integers(-3, 4, s).astype("float32")) for s in WEIGHTS_OF_UNIT]
    with builder.function("main", [x]):
        with builder.dataflow():
            image = builder.emit(op.nn.conv2d(x, weights[0]))
            for _ in range(2):
                parts = builder.emit(op.split(image, 2, 1))
                left, right = (builder.emit(relax.TupleGetItem(parts, i)) for i in (0, 1))
                right = builder.emit(op.nn.conv2d(right, weights[1], padding=1, groups=4))
                right = builder.emit(op.clip(right, -8, 8))
                image = builder.emit(op.concat([left, right], 1))
                image = builder.emit(op.reshape(image, (1, 2, 4, 6, 5)))
                image = builder.emit(op.permute_dims(image, [0, 2, 1, 3, 4]))
                image = builder.emit(op.reshape(image, (1, 8, 6, 5)))
            out = builder.emit_output(image)
        builder.emit_func_output(out)
    module = builder.get()
    made = SerenityChannelsLast()(module)
    moved = [list(map(int, call.attrs.axes)) for call in calls(made, "relax.permute_dims")]
    assert moved == [[0, 2, 3, 1], [0, 1, 2, 4, 3], [0, 1, 2, 4, 3], [0, 3, 1, 2]]
    data = rng.integers(-3, 4, (1, 8, 6, 5)).astype("float32")
    (want,), (got,) = results(module, [data]), results(made, [data])
    np.testing.assert_array_equal(got, want)


def test_a_module_without_images_is_left() -> None:
    module = nets.module((2, 3), lambda builder, x: builder.emit(op.nn.relu(x)))
    tvm.ir.assert_structural_equal(SerenityChannelsLast()(module), module)
