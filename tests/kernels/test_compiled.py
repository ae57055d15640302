"""TVM's own kernels of a module, linked: what computes something else is another entry."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm
from tvm import relax

from tests.cli.run import NO_TORCH
from tvm_serenity import compat
from tvm_serenity.relax.compiled import compiled_here, name_of
from tvm_serenity.relax.lower import lowered
from tvm_serenity.system import cache

ROOT = Path(__file__).resolve().parents[2]


def module(last: float = 3.0, kernel: Any = relax.op.add, name: str = "main") -> tvm.IRModule:
    """A kernel and a constant, whose last element is ``last``."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((4,), "float32"))
    with builder.function(name, [x]):
        with builder.dataflow():
            held = relax.const(np.array([0, 1, 2, last], np.float32))
            out = builder.emit_output(kernel(x, held))
        builder.emit_func_output(out)
    return lowered(builder.get(), tvm.target.Target("llvm"))


def result(made: tvm.IRModule) -> list[float]:
    machine = relax.VirtualMachine(compiled_here(made), tvm.cpu())
    found = machine["main"](tvm.runtime.tensor(np.ones(4, np.float32)))
    return [float(value) for value in found.numpy()]


def test_a_module_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.FOLDER, str(tmp_path / "cache"))
    compiled: list[Any] = []
    work = compat.bytecode_of

    def counted(given: tvm.IRModule, *rest: Any) -> Any:
        compiled.append(given)
        return work(given, *rest)

    monkeypatch.setattr(compat, "bytecode_of", counted)
    assert [result(module()) for _ in range(3)] == [[1, 2, 3, 4]] * 3
    assert len(compiled) == 1
    assert result(module(9.0)) == [1, 2, 3, 10]
    assert result(module(kernel=relax.op.subtract)) == [1, 0, -1, -2]
    assert len(compiled) == 3


def test_whatever_differs_is_another_entry() -> None:
    names = [
        name_of(module()),
        name_of(module(np.nextafter(np.float32(3), np.float32(4)))),
        name_of(module(kernel=relax.op.subtract)),
        name_of(module(name="other")),
    ]
    assert len(set(names)) == len(names)
    assert name_of(module()) == names[0]


def test_the_name_is_the_same_in_another_process() -> None:
    code = f"{NO_TORCH}from tests.kernels.test_compiled import *; print(name_of(module()))"
    words = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == name_of(module())
