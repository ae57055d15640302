"""``serenity replay`` compiles a kernel as validation did, so that it shows what that saw."""

import platform
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tvm")

import tvm
from tvm import relax, te, tirx

from tests.validation.test_compile import break_kernels, wrong_constant
from tvm_serenity.commands.replay import replay
from tvm_serenity.errors import UnsupportedError, WrongResultError
from tvm_serenity.kernels.workspace import placeable
from tvm_serenity.passes import serenity_pipeline
from tvm_serenity.validation.compiling import both_forms, same
from tvm_serenity.validation.execute import Signature
from tvm_serenity.validation.kernels import Case, KernelComparison, validate_kernels
from tvm_serenity.validation.report import read_reproducer, write_reproducer

GIVEN, MADE = (120,), (3, 10, 33)
BASELINE = tvm.target.Target({"kind": "llvm", "mcpu": "x86-64"})


def _masked() -> Any:
    """A kernel that LLVM's loop vectoriser makes wrong on baseline x86-64."""
    x = te.placeholder(GIVEN, "float32", name="x")

    def element(a: Any, i: Any, j: Any) -> Any:
        return te.max(x[(a * 5 + i % 5) * 8 + (j + 3) % 8], tirx.const(0, "float32"))

    out = te.compute(MADE, element)
    return placeable(te.create_prim_func([x, out]).with_attrs({"tirx.noalias": True}))


def _refused(folder: Path) -> Path:
    kernel = _masked()
    signature = Signature(((GIVEN, "float32"), (MADE, "float32")), (1,))
    case = Case("masked", "masked", kernel, kernel, signature, {}, (0,))
    forms = both_forms({"masked": kernel}, {"masked": kernel}, BASELINE)
    how = KernelComparison(str(BASELINE), same(BASELINE), 0, folder)
    with pytest.raises(WrongResultError, match=r"kernel 'masked': .*result\[.*expected"):
        validate_kernels([case], *forms, how)
    (file,) = folder.iterdir()
    return file


@pytest.mark.skipif(platform.machine() != "x86_64", reason="LLVM is wrong on baseline x86-64")
def test_what_the_vectoriser_makes_wrong_is_wrong_again(tmp_path: Path) -> None:
    """Compiled as one module, both forms would be wrong alike, and the kernel called right."""
    file = _refused(tmp_path)
    with pytest.raises(WrongResultError, match="expected"):
        replay(file)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="LLVM is wrong on baseline x86-64")
def test_the_target_is_that_of_the_file(tmp_path: Path) -> None:
    case, arrays = read_reproducer(_refused(tmp_path))
    right = {**case, "target": str(tvm.target.Target({"kind": "llvm", "opt-level": 0}))}
    assert "computes what" in replay(write_reproducer(tmp_path / "right", right, arrays))
    other = {"kind": "llvm", "mtriple": "aarch64-linux-gnu"}
    foreign = {**case, "target": str(tvm.target.Target(other))}
    with pytest.raises(UnsupportedError, match="kernel 'masked' is for aarch64"):
        replay(write_reproducer(tmp_path / "foreign", foreign, arrays))


def test_sizes_that_are_symbols_are_those_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERENITY_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    builder, size = relax.BlockBuilder(), tirx.Var("n", "int64")
    x = relax.Var("x", relax.TensorType((size, 2, 2, 4), "float32"))
    with builder.function("main", [x], attrs={"tir_var_upper_bound": {"n": 5}}):
        with builder.dataflow():
            out = builder.emit_output(relax.op.nn.relu(relax.op.add(x, x)))
        builder.emit_func_output(out)
    break_kernels(monkeypatch, wrong_constant)
    with pytest.raises(WrongResultError):
        tvm.compile(builder.get(), "llvm", relax_pipeline=serenity_pipeline())
    (file,) = tmp_path.glob("*.npz")
    with pytest.raises(WrongResultError, match="expected"):
        replay(file)
    case, _ = read_reproducer(file)
    assert [5] in [shape[:1] for shape, _ in case["tensors"]]
