"""Executables taken apart and built again: instructions, shared constants, memory that is held."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import sampled
from tests.cli.run import NO_TORCH
from tvm_serenity.errors import InputError, UnsupportedError

tvm = pytest.importorskip("tvm")

from tvm import relax  # noqa: E402

from tvm_serenity import zoo  # noqa: E402
from tvm_serenity.relax import compiled  # noqa: E402
from tvm_serenity.runtime import bytecode, library  # noqa: E402
from tvm_serenity.runtime.pipeline import serenity_pipeline  # noqa: E402
from tvm_serenity.validation.network_inputs import random_inputs  # noqa: E402

REPORT = {"needs": library.needs(tvm.target.Target("llvm"))}


LLVM = tvm.target.Target("llvm")


def in_memory(module: Any, target: Any, pipeline: Any) -> compiled.Built:
    """What is built without a C compiler."""
    return compiled.Built(tvm.compile(module, target=target, relax_pipeline=pipeline))


def arrays(found: Any) -> list[np.ndarray[Any, Any]]:
    """Return the arrays of a result, or of a tuple of them."""
    if isinstance(found, tvm.runtime.Tensor):
        return [found.numpy()]
    return [array for part in found for array in arrays(part)]


def ran(machine: Any, inputs: list[Any]) -> list[np.ndarray[Any, Any]]:
    """Return what a network makes of its inputs."""
    return arrays(machine["main"](*(tvm.runtime.tensor(a) for a in inputs)))


@pytest.mark.parametrize("name", sampled(["swiftnet-cell-c", "randwire?n=12&channels=16"], 1))
@pytest.mark.parametrize("one_file", [False, True], ids=["apart", "one-file"])
@pytest.mark.parametrize("linked", [False, True], ids=["in-memory", "objects"])
def test_a_loaded_library_computes_the_same(
    name: str, one_file: bool, linked: bool, tmp_path: Path
) -> None:
    module = zoo.build(name)
    compile_module = compiled.built if linked else in_memory
    built = compile_module(module, LLVM, serenity_pipeline(validate=False))
    relax.VirtualMachine(built.executable, tvm.cpu())  # leaves its mark in the executable
    library.write(built, tmp_path, REPORT, one_file)
    made = {p.name for p in tmp_path.iterdir()}
    assert made == {"lib.so", "report.json"} | (
        set() if one_file else {"bytecode.json", "constants.bin"}
    )
    inputs = random_inputs(module)
    found = ran(library.load(tmp_path), inputs)
    for ours, theirs in zip(
        found, ran(relax.VirtualMachine(built.executable, tvm.cpu()), inputs), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


def branches() -> Any:
    """Return the module of a condition that calls a second function, or multiplies."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((4,), "float32"))
    with builder.function("inner", [x]):
        steps = relax.const(np.arange(4, dtype=np.float32))
        inner = builder.emit_func_output(builder.emit(relax.op.add(x, steps)))
    given = relax.Var("given", relax.TensorType((4,), "float32"))
    yes = relax.Var("yes", relax.TensorType((), "bool"))
    with builder.function("main", [yes, given]):
        twos = relax.const(np.full(4, 2, np.float32))
        chosen = relax.If(
            yes,
            relax.SeqExpr([], relax.Call(inner, [given])),
            relax.SeqExpr([], relax.op.multiply(given, twos)),
        )
        builder.emit_func_output(builder.emit(chosen))
    return relax.transform.Normalize()(builder.get())


@pytest.mark.parametrize("yes", [False, True])
def test_conditions_and_calls_survive(yes: bool, tmp_path: Path) -> None:
    built = compiled.built(branches(), LLVM)
    library.write(built, tmp_path, REPORT)
    x = np.asarray([5, 6, 7, 8], np.float32)
    (found,) = ran(library.load(tmp_path), [np.asarray(yes), x])
    np.testing.assert_array_equal(found, x + np.arange(4) if yes else 2 * x)


def test_equal_constants_and_those_of_one_element_share_bytes() -> None:
    ramp = np.arange(40, dtype=np.int8).tobytes()
    ones = [np.ones(n, np.float32).tobytes() for n in (3, 50, 7)]
    zeros = np.zeros(90, np.int8).tobytes()
    payloads = [(ramp, 1), *((o, 4) for o in ones), (zeros, 1), (ramp, 1), (b"", 4)]
    offsets, file = bytecode._placed(payloads)
    assert all(offset % 64 == 0 for offset in offsets)
    assert offsets[0] == offsets[5]
    assert len({*offsets[1:4]}) == 1
    assert len(file) == 64 + 256 + 128
    for (data, _), offset in zip(payloads, offsets, strict=True):
        assert file[offset : offset + len(data)] == data


def test_tensors_are_aligned_and_mapped(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(range(256)))
    mapped = np.memmap(tmp_path / "file", np.uint8, "c")
    value = ["int16", [4], 64, 8]
    held = bytecode._value(bytecode.TENSOR, value, mapped)
    assert held.data_ptr() == mapped.ctypes.data + 64
    assert held.data_ptr() % 64 == 0
    expected = np.frombuffer(bytes(range(64, 72)), np.int16)
    np.testing.assert_array_equal(held.numpy(), expected)


CHILD = """
import sys
from pathlib import Path
import numpy as np, tvm
from tvm_serenity.runtime import library
def held(which):
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(x.split()[1]) for x in lines if x.startswith(which))
x = tvm.runtime.tensor(np.ones((1, 2048), np.float32))
before = held("VmRSS")
machine = library.load(sys.argv[1])
machine["main"](x)
print(held("VmHWM") - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc")
def test_weights_are_held_once(tmp_path: Path) -> None:
    """16 MB of weights: about as much with constants apart, and more than twice with one file."""
    x = relax.Var("x", relax.TensorType((1, 2048), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        drawn = np.random.default_rng(0).normal(size=(2048, 2048)).astype(np.float32)
        builder.emit_func_output(builder.emit(relax.op.matmul(x, relax.const(drawn))))
    built = compiled.built(builder.get(), LLVM, serenity_pipeline(validate=False))
    size, most = 4 * 2048 * 2048, {}
    for one_file in (False, True):
        folder = tmp_path / str(one_file)
        folder.mkdir()
        library.write(built, folder, REPORT, one_file)
        words = [sys.executable, "-c", NO_TORCH + CHILD, str(folder)]
        made = subprocess.run(words, capture_output=True, text=True, check=True)
        most[one_file] = int(made.stdout)
    assert most[False] < 1.4 * size
    assert most[True] > 2 * size


def test_another_format_is_refused(tmp_path: Path) -> None:
    for data in (bytes(64), b"\x1e\x15\x14B/\xde%\xd2" + bytes(8) + b"\1" + bytes(7) + b"\2"):
        with pytest.raises(UnsupportedError, match=r"another format|is compiled"):
            bytecode._read(bytecode._Reader(data + bytes(256)))
    library.write(compiled.built(branches(), LLVM), tmp_path, REPORT)
    (tmp_path / "bytecode.json").write_text("{}")
    with pytest.raises(InputError, match=r"bytecode\.json"):
        library.load(tmp_path)
    (tmp_path / "constants.bin").unlink()
    with pytest.raises(InputError, match=r"constants\.bin"):
        library.load(tmp_path)
