"""``compile`` with one thing broken: always status 1, one line, nothing written."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

tvm = pytest.importorskip("tvm")
from tvm import relax, s_tir, tirx  # noqa: E402

from tvm_serenity import compat  # noqa: E402
from tvm_serenity.commands.replay import replay  # noqa: E402
from tvm_serenity.errors import WrongResultError  # noqa: E402
from tvm_serenity.kernels import measured  # noqa: E402
from tvm_serenity.plan import PlanOptions, plan  # noqa: E402
from tvm_serenity.plan.joint import buffers_of  # noqa: E402
from tvm_serenity.relax import lean_kernels, plan_memory  # noqa: E402
from tvm_serenity.runtime import build  # noqa: E402
from tvm_serenity.runtime.build import compile_and_compare  # noqa: E402
from tvm_serenity.runtime.checks import Checks  # noqa: E402
from tvm_serenity.validation.report import read_reproducer  # noqa: E402


def network_of(width: int = 8) -> Any:
    """Return a network of two branches: convolution, relu, concat, convolution, pool."""
    rng = np.random.default_rng(0)
    x = relax.Var("x", relax.TensorType((1, 3, 8, 8), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            parts = []
            for size in (1, 3):
                w = relax.const(rng.standard_normal((width, 3, size, size)).astype("float32"))
                made = builder.emit(relax.op.nn.conv2d(x, w, padding=size // 2))
                parts.append(builder.emit(relax.op.nn.relu(made)))
            both = builder.emit(relax.op.concat(parts, axis=1))
            w = relax.const(rng.standard_normal((width, 2 * width, 3, 3)).astype("float32"))
            mixed = builder.emit(relax.op.nn.conv2d(both, w, padding=1))
            pooled = builder.emit(relax.op.nn.max_pool2d(mixed, (2, 2), (2, 2)))
            out = builder.emit_output(builder.emit(relax.op.flatten(pooled)))
        builder.emit_func_output(out)
    return builder.finalize()


def compiled(folder: Path, **options: Any) -> Any:
    return compile_and_compare(network_of(), checks=Checks(folder=folder), **options)


def lean_but(change: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return ``lean`` with its result changed where it has stores into a result."""
    from tvm_serenity.kernels.lean import lean

    return lambda kernel, *rest, **named: change(lean(kernel, *rest, **named))


def break_kernels(monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], Any]) -> None:
    """Change all lean kernels, whether forms were measured for this machine or not."""
    for module in (lean_kernels, measured):
        monkeypatch.setattr(module, "lean", lean_but(change))


def stores_changed(kernel: Any, change: Callable[[Any], Any]) -> Any:
    import tvm_ffi

    body = tvm_ffi.structural_map(kernel.body, (tirx.BufferStore, change))
    return tirx.PrimFunc(kernel.params, body, kernel.ret_type, kernel.attrs)


def of_result(store: Any, kernel: Any) -> bool:
    return bool(store.buffer.same_as(kernel.params[-1]))


def dropped_row(kernel: Any) -> Any:
    """Leave out the last row of every result of four axes."""

    def change(store: Any) -> Any:
        if not of_result(store, kernel) or len(store.indices) != 4:
            return store
        inside = store.indices[2] < int(store.buffer.ty.shape[2]) - 1
        return tirx.IfThenElse(inside, store, None)

    return stores_changed(kernel, change)


def wrong_constant(kernel: Any) -> Any:
    def change(store: Any) -> Any:
        if not of_result(store, kernel):
            return store
        return tirx.BufferStore(store.buffer, store.value + 0.001, store.indices)

    return stores_changed(kernel, change)


def outside(kernel: Any) -> Any:
    """Write one element behind the result."""
    result = kernel.params[-1]
    last = [int(e) - 1 for e in result.ty.shape]
    more = tirx.BufferStore(result, tirx.const(1.0, "float32"), [*last[:-1], last[-1] + 1])
    block = s_tir.SBlock([], [], [], "root", tirx.SeqStmt([kernel.body, more]))
    body = s_tir.SBlockRealize([], True, block)
    return tirx.PrimFunc(kernel.params, body, kernel.ret_type, kernel.attrs)


def far_outside(kernel: Any) -> Any:
    """Write to where no memory is."""
    result = kernel.params[-1]
    zeros = [0] * (len(result.ty.shape) - 1)
    more = tirx.BufferStore(
        result, tirx.const(1.0, "float32"), [*zeros, tirx.const(2**40, "int64")]
    )
    block = s_tir.SBlock([], [], [], "root", tirx.SeqStmt([kernel.body, more]))
    body = s_tir.SBlockRealize([], True, block)
    return tirx.PrimFunc(kernel.params, body, kernel.ret_type, kernel.attrs)


@pytest.mark.parametrize(
    ("mutant", "said"),
    [
        (dropped_row, "result"),
        (wrong_constant, "result"),
        (outside, "writes outside of its tensors"),
        (far_outside, "died of SIG"),
    ],
)
def test_a_wrong_kernel_is_named_and_shown_again(
    mutant: Any, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_kernels(monkeypatch, mutant)
    with pytest.raises(WrongResultError, match=said) as found:
        compiled(tmp_path)
    (file,) = tmp_path.iterdir()
    assert str(file) in str(found.value)
    assert "kernel 'fused_conv2d" in str(found.value) or "kernel 'fused_" in str(found.value)
    case, _ = read_reproducer(file)
    assert case["kind"] == "tir"
    with pytest.raises(WrongResultError, match=said):
        replay(file)


def test_overlapping_places_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan_graph = plan_memory.plan_graph

    def overlapping(*given: Any, **options: Any) -> Any:
        from dataclasses import replace

        found = plan(*given, **options)
        return replace(found, offsets=(0,) * len(found.offsets))

    def planned(by: Any, *given: Any, **options: Any) -> Any:
        ranges, _ = plan_graph(*given, **options)
        return ranges, by(buffers_of(ranges, compat.ARENA_ALIGNMENT), "auto", PlanOptions())

    monkeypatch.setattr(build, "plan_graph", partial(planned, overlapping))
    with pytest.raises(WrongResultError, match="the checker rejects the memory plan"):
        compiled(tmp_path)
    monkeypatch.undo()
    monkeypatch.setattr(plan_memory, "plan", overlapping)
    monkeypatch.setattr(build, "plan_graph", partial(planned, plan))
    with pytest.raises(WrongResultError, match="differ from those of"):
        compiled(tmp_path)


def test_another_order_than_scheduled_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "order_module", lambda module, _order: module)

    def last_first(graph: Any, *given: Any) -> Any:
        from dataclasses import replace

        from tvm_serenity.schedule import schedule

        found = schedule(graph, *given)
        position = {op: i for i, op in enumerate(found.order)}
        first, second = sorted((0, 1), key=position.__getitem__)  # the two branches
        swapped = {first: second, second: first}
        return replace(found, order=tuple(swapped.get(op, op) for op in found.order))

    monkeypatch.setattr(build, "schedule", last_first)
    with pytest.raises(WrongResultError, match="did not execute the order: call 0 is"):
        compiled(tmp_path)


def test_results_that_were_never_written_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without validation of kernels, too: the two runs start from different poison."""
    break_kernels(monkeypatch, dropped_row)
    with pytest.raises(WrongResultError, match="differ from those of the given order"):
        compile_and_compare(network_of(), checks=Checks(kernels=False))


def test_a_network_that_was_rewritten_wrongly_is_found(tmp_path: Path) -> None:
    other = network_of()
    with pytest.raises(WrongResultError, match="on the model as it was"):
        compile_and_compare(other, checks=Checks(before=_scaled(), folder=tmp_path))


def _scaled() -> Any:
    x = relax.Var("x", relax.TensorType((1, 3, 8, 8), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            flat = builder.emit(relax.op.flatten(x))
            some = builder.emit(relax.op.strided_slice(flat, [0], [0], [128]))
            out = builder.emit_output(builder.emit(relax.op.add(some, relax.const(1.0))))
        builder.emit_func_output(out)
    return builder.finalize()


def test_all_is_well_without_mutants(tmp_path: Path) -> None:
    found = compiled(tmp_path)
    assert found.order_executed
    assert found.validated is not None
    assert found.validated.kernels >= 3
    assert not list(tmp_path.iterdir())
