"""Sums over rows of a tensor that is made whole: every row is taken in, or the checker says so."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.cases import only_exhaustive
from tests.firmware.projects import needs_host
from tvm_serenity import firmware
from tvm_serenity.boards import board
from tvm_serenity.errors import CheckError
from tvm_serenity.firmware import Settings
from tvm_serenity.firmware.check.calls import check
from tvm_serenity.firmware.compile import driver as making
from tvm_serenity.firmware.compile import fallback


def module(height: int, width: int) -> Any:
    """An image that is turned over as a whole, its pixels and the mean of all."""
    from tvm import relax

    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, width + 62, height, 2), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            scaled = relax.op.multiply(x, relax.const(2.0, "float32"))
            turned = builder.emit(relax.op.permute_dims(scaled, [0, 2, 1, 3]))
            halved = relax.op.multiply(turned, relax.const(0.5, "float32"))
            out = builder.emit_output(relax.op.nn.relu(halved))
            pool = relax.op.nn.avg_pool2d(turned, (height, width + 62), layout="NHWC")
            mean = builder.emit_output(pool)
        builder.emit_func_output(relax.Tuple([out, mean]))
    return builder.get()


@needs_host
@pytest.mark.parametrize(
    ("height", "width", "rows"),
    [(5, 4, 1), (7, 3, 2), *map(only_exhaustive, [(5, 4, 2), (7, 3, 1)])],
)
def test_every_row_is_added(height: int, width: int, rows: int) -> None:
    settings = Settings(name="net", rows=rows, time_limit_s=1)
    made = fallback.make(module(height, width), "net", board("mps2-an386"), settings)
    sums = [step for step in made.program.steps if step.adds]
    assert [step.height for step in sums] == [height]
    check(made.program)
    built = firmware.build(module(height, width), "mps2-an386", settings)
    assert built.facts["check"]["tensors"] > 2


def test_a_row_that_is_left_out_is_found() -> None:
    settings = Settings(rows=1, time_limit_s=1)
    program = fallback.make(module(5, 4), "net", board("mps2-an386"), settings).program
    (number,) = [i for i, step in enumerate(program.steps) if step.adds]
    one = replace(program.steps[number], together=1)
    steps = tuple(one if i == number else step for i, step in enumerate(program.steps))
    with pytest.raises(CheckError, match="reads a sum of 1 rows; expected all 5"):
        check(replace(program, steps=steps))
    calls = [
        call
        for step, band in program.calls
        for call in ([(step, b) for b in (0, 2, 1, 3, 4)] if step == number else [(step, band)])
    ]
    with pytest.raises(CheckError, match="adds row 2 to a sum; expected row 1"):
        check(replace(program, steps=steps, sequence=tuple(calls)))


def soft() -> Any:
    """What a softmax over rows divides by, whose kernel keeps all exponentials; and a map."""
    from tvm import relax

    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 4, 9, 30), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            most = builder.emit(relax.op.max(x, [1], keepdims=True))
            powers = relax.op.exp(relax.op.subtract(x, most))
            total = builder.emit_output(relax.op.sum(powers, [1], keepdims=True))
            out = builder.emit_output(relax.op.nn.relu(x))
        builder.emit_func_output(relax.Tuple([out, total]))
    return builder.get()


@needs_host
def test_a_row_that_wants_workspace_is_made_with_all_others() -> None:
    settings = Settings(name="net", rows=1, time_limit_s=1)
    network = making.NetworkCompiler(soft(), "net", board("mps2-an386"), settings).rows().network
    found = [(layer.splits, layer.whole) for layer in network.layers]
    assert (False, "its row kernel needs workspace") in found
    assert any(splits for splits, _ in found)
    built = firmware.build(soft(), "mps2-an386", settings)
    assert built.facts["check"]["tensors"] > 1


def shuffled() -> Any:
    """Rows in an order that no straight line goes through, then a map."""
    from tvm import relax

    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 6, 4, 3), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            order = relax.const(np.array([0, 2, 1, 5, 3, 4], np.int64), "int64")
            y = builder.emit(relax.op.nn.relu(x))
            out = builder.emit_output(relax.op.take(y, order, axis=1))
            more = builder.emit_output(relax.op.multiply(y, relax.const(0.5, "float32")))
        builder.emit_func_output(relax.Tuple([out, more]))
    return builder.get()


@needs_host
def test_rows_in_no_order_are_listed() -> None:
    settings = Settings(name="net", rows=1, time_limit_s=1)
    network = (
        making.NetworkCompiler(shuffled(), "net", board("mps2-an386"), settings).rows().network
    )
    assert all(layer.splits for layer in network.layers)
    built = firmware.build(shuffled(), "mps2-an386", settings)
    assert built.facts["check"]["tensors"] > 1
