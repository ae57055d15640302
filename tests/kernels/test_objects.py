"""Objects of kernels: each distinct one compiled once, whoever asks for it and under which name."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.relax import objects
from tvm_serenity.relax.compiled import TARGET, built, functions_of
from tvm_serenity.relax.lower import lowered
from tvm_serenity.system import cache


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The symbols that were compiled in this process, from an empty cache."""
    monkeypatch.setenv(cache.FOLDER, str(tmp_path / "cache"))
    monkeypatch.setattr(objects, "_KNOWN", {})
    found: list[str] = []
    work = compat.write_object

    def counted(kernel: Any, name: str, *rest: Any) -> None:
        found.append(name)
        work(kernel, name, *rest)

    monkeypatch.setattr(compat, "write_object", counted)
    return found


def kernels(*steps: Callable[[Any], Any], size: int = 6) -> dict[str, Any]:
    """The kernels of a network of steps that are not fused, by name."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((size,), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            made = x
            for step in steps:
                made = builder.emit(step(made))
            out = builder.emit_output(made)
        builder.emit_func_output(out)
    module = relax.transform.LegalizeOps()(builder.get())
    return {v.name_hint: f for v, f in module.functions.items() if compat.is_prim_func(f)}


def one(name: str = "exp", size: int = 6) -> dict[str, Any]:
    (kernel,) = kernels(relax.op.exp, size=size).values()
    return {name: kernel}


def called(function: Any, size: int = 6) -> np.ndarray[Any, Any]:
    given = tvm.runtime.tensor(np.arange(size, dtype=np.float32) / 4)
    result = tvm.runtime.tensor(np.zeros(size, np.float32))
    function(given, result)
    return np.asarray(result.numpy())


def on(_kernel: Any) -> Any:
    return TARGET


def test_one_kernel_of_two_names_is_one_object(compiled: list[str]) -> None:
    twice = {**one("first"), **one("second")}
    functions = functions_of(twice, on)
    expected = np.exp(np.arange(6, dtype=np.float32) / 4)
    for name in twice:
        np.testing.assert_allclose(called(functions(name)), expected, rtol=1e-6)
    assert len(compiled) == 1
    functions_of(one("third"), on)
    assert len(compiled) == 1


def test_the_cache_knows_it_in_another_process(
    compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    functions_of(one(), on)
    monkeypatch.setattr(objects, "_KNOWN", {})
    functions_of(one(), on)
    assert len(compiled) == 1


@pytest.mark.parametrize("change", ["size", "body", "target", "attribute"])
def test_whatever_differs_is_another_object(compiled: list[str], change: str) -> None:
    functions_of(one(), on)
    target, other = TARGET, one()
    if change == "size":
        other = one(size=7)
    elif change == "body":
        other = dict(zip(["exp"], kernels(relax.op.sin).values(), strict=True))
    elif change == "target":
        target = tvm.target.Target("llvm")
    else:
        other = {name: kernel.with_attr("mark", 1) for name, kernel in other.items()}
    functions_of(other, lambda _kernel: target)
    assert len(compiled) == len(set(compiled)) == 2


def test_many_are_compiled_in_several_processes(
    compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "_cores", lambda: 2)
    many = {f"k{size}": one(size=size)["exp"] for size in range(1, 9)}
    said: list[str] = []
    made = objects.objects_of(many, on, said.append)
    assert made.compiled == len(made.content) == 8
    assert said[-1] == "compiling kernels: 8 of 8"
    assert len(compiled) == 4  # the others elsewhere
    module = objects.loaded(made.library())
    for size in range(1, 9):
        found = called(module.get_function(f"k{size}", query_imports=True), size)
        np.testing.assert_allclose(found, np.exp(np.arange(size) / 4), rtol=1e-6)


def test_what_another_process_cannot_compile_is_told_here(
    compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "_cores", lambda: 2)
    work = compat.write_object
    many = {f"k{size}": one(size=size)["exp"] for size in range(1, 9)}

    def refused(kernel: Any, name: str, *rest: Any) -> None:
        if int(compat.buffer_shape(kernel.params[0])[0]) == 8:
            raise RuntimeError("no such instruction")
        work(kernel, name, *rest)

    monkeypatch.setattr(compat, "write_object", refused)
    with pytest.raises(RuntimeError, match="no such instruction"):
        objects.objects_of(many, on)


def network() -> Any:
    rng = np.random.default_rng(3)
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 4, 6, 6), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            w = relax.const(rng.standard_normal((8, 4, 3, 3)).astype(np.float32))
            y = builder.emit(relax.op.nn.relu(builder.emit(relax.op.nn.conv2d(x, w))))
            out = builder.emit_output(builder.emit(relax.op.nn.max_pool2d(y, (2, 2), (2, 2))))
        builder.emit_func_output(out)
    return builder.get()


def test_a_network_is_what_tvm_makes_of_it_as_it_runs_and_as_a_file(tmp_path: Path) -> None:
    module = lowered(network(), TARGET)
    given = np.random.default_rng(4).standard_normal((1, 4, 6, 6)).astype(np.float32)
    made = built(module, TARGET)
    made.export(tmp_path / "lib.so")
    executables = (
        tvm.compile(module, target=TARGET),
        made.executable,
        tvm.runtime.load_module(str(tmp_path / "lib.so")),
    )
    results = [
        relax.VirtualMachine(e, tvm.cpu())["main"](tvm.runtime.tensor(given)).numpy()
        for e in executables
    ]
    assert results[0].any()
    for found in results[1:]:
        np.testing.assert_array_equal(found, results[0])


def test_what_stock_tvm_plans_is_what_it_allocates() -> None:
    from tvm_serenity.runtime.build import stock_of
    from tvm_serenity.runtime.vm import run

    module = network()
    given = [np.zeros((1, 4, 6, 6), np.float32)]
    ran = run(built(module, TARGET).executable, given)
    planned = stock_of(module, TARGET, None, ran.outputs)
    measured = stock_of(module, TARGET, ran, ran.outputs)
    assert planned.storage_bytes == measured.storage_bytes > 0
    assert planned.workspace_bytes == measured.workspace_bytes
