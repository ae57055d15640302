"""Loops that were written out, as one kernel each: the same results, one body."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.frontends.lstm_loops import stacked
from tests.quantize.running import Machine

tvm = pytest.importorskip("tvm")

from tvm import relax  # noqa: E402

from tvm_serenity import compat  # noqa: E402
from tvm_serenity.frontends import load  # noqa: E402
from tvm_serenity.frontends.relax import to_relax  # noqa: E402
from tvm_serenity.kernels import loop as kernels  # noqa: E402
from tvm_serenity.passes import SerenityLoops  # noqa: E402
from tvm_serenity.relax import loop_search  # noqa: E402
from tvm_serenity.relax.bindings import bindings  # noqa: E402

TURNS, WIDTH = 9, 3
RNG = np.random.default_rng(5)


def drawn(*shape: int) -> Any:
    return RNG.normal(0, 0.4, shape).astype(np.float32)


W, R, B = drawn(WIDTH, WIDTH), drawn(WIDTH, WIDTH), drawn(1, WIDTH)
Write = Callable[[relax.BlockBuilder, Any], Any]


def module(write: Write, *shape: int) -> Any:
    """A function of one float tensor of ``shape``."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(shape, "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            made = builder.emit_output(write(builder, x))
        builder.emit_func_output(made)
    return builder.finalize()


def turns(
    builder: relax.BlockBuilder, rows: list[Any], state: Any, weights: list[Any] | None = None
) -> list[Any]:
    """The states of a plain recurrent layer after each row."""
    op, made = relax.op, []
    for t, row in enumerate(rows):
        given = builder.emit(op.matmul(row, relax.const(W)))
        kept = builder.emit(op.matmul(state, relax.const(R if weights is None else weights[t])))
        total = builder.emit(op.add(builder.emit(op.add(given, kept)), relax.const(B)))
        state = builder.emit(op.tanh(total))
        made.append(state)
    return made


def cut(builder: relax.BlockBuilder, x: Any, order: range, axis: int = 0) -> list[Any]:
    """Rows of a tensor, each (1, WIDTH)."""
    found = []
    for t in order:
        part = builder.emit(relax.op.strided_slice(x, [axis], [t], [t + 1]))
        found.append(builder.emit(relax.op.reshape(part, (1, WIDTH))))
    return found


ZERO = np.zeros((1, WIDTH), np.float32)


def stack_of_states(builder: relax.BlockBuilder, x: Any) -> Any:
    made = turns(builder, cut(builder, x, range(TURNS)), relax.const(ZERO))
    return relax.op.stack(made, axis=0)


def last_state_and_a_middle_one(builder: relax.BlockBuilder, x: Any) -> Any:
    made = turns(builder, cut(builder, x, range(TURNS)), relax.const(ZERO))
    return relax.Tuple([made[-1], builder.emit(relax.op.negative(made[4]))])


def backwards_after_a_first_row(builder: relax.BlockBuilder, x: Any) -> Any:
    """Rows from the last to the first, joined in their order behind another row."""
    rows = cut(builder, x, range(TURNS - 1, -1, -1))
    begin = builder.emit(relax.op.sigmoid(rows[0]))
    made = turns(builder, rows, begin)
    return relax.op.concat([begin, *made[::-1], begin], axis=0)


def both_directions(builder: relax.BlockBuilder, x: Any) -> Any:
    """States of both directions side by side, as ONNX and Keras join them."""
    there = turns(builder, cut(builder, x, range(TURNS)), relax.const(ZERO))
    back = turns(builder, cut(builder, x, range(TURNS - 1, -1, -1)), relax.const(ZERO))[::-1]
    pairs = [builder.emit(relax.op.concat([a, b], 1)) for a, b in zip(there, back, strict=True)]
    return relax.op.concat(pairs, axis=0)


KEPT: dict[Write, int] = {
    stack_of_states: 1,
    last_state_and_a_middle_one: 1,
    backwards_after_a_first_row: 1,
    both_directions: 2,
}


def calls_of_loops(mod: Any) -> int:
    called = [compat.called_kernel(v) for _, v in bindings(mod["main"]) if compat.is_call(v)]
    return sum(k is not None and k.name_hint.startswith("loop") for k in called)


def outputs(mod: Any, x: Any) -> list[Any]:
    with tvm.transform.PassContext(disabled_pass=["SerenityLoops"]):
        found: list[Any] = Machine(mod).run([x])
        return found


@pytest.mark.parametrize("write", KEPT, ids=lambda write: write.__name__)
def test_a_loop_computes_what_its_turns_compute(write: Write) -> None:
    mod = module(write, TURNS, WIDTH)
    made = SerenityLoops("llvm")(mod)
    assert calls_of_loops(made) == KEPT[write]
    x = drawn(TURNS, WIDTH)
    for ours, expected in zip(outputs(made, x), outputs(mod, x), strict=True):
        np.testing.assert_array_equal(ours, expected)


def other_weights_in_one_turn(builder: relax.BlockBuilder, x: Any) -> Any:
    weights = [R] * 4 + [R + 1] + [R] * (TURNS - 5)
    return relax.op.stack(
        turns(builder, cut(builder, x, range(TURNS)), relax.const(ZERO), weights), axis=0
    )


def a_row_twice(builder: relax.BlockBuilder, x: Any) -> Any:
    rows = cut(builder, x, range(TURNS))
    return relax.op.stack(turns(builder, [*rows[:4], rows[3], *rows[5:]], relax.const(ZERO)), 0)


def read_between_its_turns(builder: relax.BlockBuilder, x: Any) -> Any:
    rows = cut(builder, x, range(TURNS))
    first = turns(builder, rows[:5], relax.const(ZERO))
    seen = builder.emit(relax.op.negative(first[0]))
    return relax.op.concat([seen, *turns(builder, rows[5:], first[-1])], axis=0)


def independent_rows(builder: relax.BlockBuilder, x: Any) -> Any:
    made = [builder.emit(relax.op.matmul(r, relax.const(W))) for r in cut(builder, x, range(TURNS))]
    return relax.op.concat(made, axis=0)


def a_chain_of_elements(builder: relax.BlockBuilder, x: Any) -> Any:
    for _ in range(2 * TURNS):
        x = builder.emit(relax.op.tanh(x))
    return x


@pytest.mark.parametrize(
    "write",
    [
        other_weights_in_one_turn,
        a_row_twice,
        read_between_its_turns,
        independent_rows,
        a_chain_of_elements,
    ],
    ids=lambda write: write.__name__,
)
def test_what_is_no_loop_stays(write: Write) -> None:
    mod = module(write, TURNS, WIDTH)
    assert not loop_search.loops(mod, mod["main"])
    assert SerenityLoops("llvm")(mod).same_as(mod)


def test_rows_that_are_not_contiguous_stay_written_out() -> None:
    def write(builder: relax.BlockBuilder, x: Any) -> Any:
        made = turns(builder, cut(builder, x, range(TURNS), axis=1), relax.const(ZERO))
        return relax.op.stack(made, axis=0)

    mod = module(write, WIDTH, TURNS)
    assert not loop_search.loops(mod, mod["main"])


def _one_further(row: kernels.LoopRow) -> kernels.LoopRow:
    return kernels.LoopRow(row.parameter, row.first, row.step - 1)


def _as_before(state: kernels.LoopState) -> kernels.LoopState:
    return kernels.LoopState(state.tensor, state.start, state.tensor)


@pytest.mark.parametrize("fault", ["rows", "states", "backwards"])
def test_a_wrong_kernel_is_seen(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = kernels.loop_kernel

    def wrong(loop: kernels.Loop) -> Any:
        rows, states, results = loop.rows, loop.states, loop.results
        if fault == "rows":
            rows = {t: _one_further(row) if row.step else row for t, row in rows.items()}
        elif fault == "states":
            states = tuple(map(_as_before, states))
        else:
            results = tuple(kernels.LoopResult(r.tensor, r.rows, not r.backwards) for r in results)
        held = (loop.turns, loop.parameters, loop.tensors, rows, states, loop.calls, results)
        return real(kernels.Loop(*held))

    monkeypatch.setattr("tvm_serenity.relax.loops.loop_kernel", wrong)
    mod = module(stack_of_states, TURNS, WIDTH)
    x = drawn(TURNS, WIDTH)
    (ours,), (expected,) = outputs(SerenityLoops("llvm")(mod), x), outputs(mod, x)
    assert (ours != expected).any()


def test_layers_of_one_shape_share_a_kernel(tmp_path: Path) -> None:
    path = tmp_path / "lstm.tflite"
    path.write_bytes(stacked(10, 3, 2))
    mod = to_relax(load(path))
    made = SerenityLoops("llvm")(mod)
    assert calls_of_loops(made) == 2
    assert sum(compat.is_prim_func(f) for f in made.functions.values()) == 1
    x = drawn(10, 1, 3)
    (ours,), (expected,) = outputs(made, x), outputs(mod, x)
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-6)


def test_the_body_shares_its_workspace() -> None:
    """States stay, other tensors of one turn lie where others lay before."""
    tensors = (((4,), "float32"),) * 5
    held = module(a_chain_of_elements, 4)
    copy = next(
        f
        for f in compat.lower_and_fuse(tvm.target.Target("llvm"))(held).functions.values()
        if compat.is_prim_func(f)
    )
    calls = ((copy, (0, 1)), (copy, (1, 2)), (copy, (2, 3)), (copy, (3, 4)))
    loop = kernels.Loop(8, ((4, "float32"),), tensors, {}, (kernels.LoopState(0, 0, 4),), calls, ())
    ends = {t: at + loop.count(t) for t, at in loop.offsets.items()}
    assert max(ends.values()) == 12  # the state, and two of the four others
    assert loop.offsets[4] >= 4 or loop.offsets[0] >= 4
