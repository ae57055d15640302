"""The pipeline compares each kernel with TVM's own while a network is compiled."""

import warnings
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tvm")

import tvm
from tvm import relax

from tests.cases import only_exhaustive
from tvm_serenity import zoo
from tvm_serenity.errors import InputError, WrongResultError
from tvm_serenity.passes import SerenityOptions, serenity_pipeline
from tvm_serenity.relax import lean_kernels
from tvm_serenity.runtime import pipeline
from tvm_serenity.tvm_targets import native
from tvm_serenity.validation import compiling


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SERENITY_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[compiling.Validated]:
    """What was compared, call by call."""
    found: list[compiling.Validated] = []

    def kept(*arguments: Any) -> compiling.Validated:
        found.append(compiling.validated(*arguments))
        return found[-1]

    monkeypatch.setattr(pipeline, "validated", kept)
    return found


def _flipped(size: Any = 4, **attributes: Any) -> tvm.IRModule:
    """A reshape that is fused into a flip."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((size, 2, 2, 4), "float32"))
    with builder.function("main", [x], attrs=attributes):
        with builder.dataflow():
            flat = builder.emit(relax.op.reshape(x, (1, size * 16)))
            flipped = builder.emit(relax.op.flip(flat, axis=1))
            builder.emit(relax.op.nn.log_softmax(flat, axis=-1))
            out = builder.emit_output(relax.op.add(flipped, flipped))
        builder.emit_func_output(out)
    made: tvm.IRModule = builder.get()
    return made


def _compiled(module: tvm.IRModule, target: Any = "llvm", **options: Any) -> Any:
    return tvm.compile(module, target=target, relax_pipeline=serenity_pipeline(**options))


def test_a_wrong_kernel_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lean_kernels, "safe_indices", lambda kernel, target: kernel)
    with pytest.raises(WrongResultError, match=r"fused_reshape_flip_add.*result\[0, 0\] is "):
        _compiled(_flipped())
    with pytest.raises(WrongResultError, match="fused_reshape_flip_add"):
        tvm.compile(_flipped(), "llvm", relax_pipeline=relax.get_pipeline("serenity"))
    _compiled(_flipped(), validate=False)
    with tvm.transform.PassContext(instruments=[SerenityOptions(validate=False)]):
        _compiled(_flipped())
        with pytest.raises(WrongResultError):  # what the pipeline is made with wins
            _compiled(_flipped(), validate=True)


@pytest.mark.parametrize("target", ["llvm", only_exhaustive(native()), "c"])
def test_it_is_compared_once(done: list[compiling.Validated], target: Any) -> None:
    mod = zoo.build("swiftnet-cell-a")
    _compiled(mod, target)
    _compiled(mod, target)
    first, second = done
    assert first.compared > 5
    assert (first.known, first.left, first.foreign) == (0, 0, 0)
    assert second == compiling.Validated(0, first.compared, sets=first.sets)


def test_a_wrong_kernel_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(lean_kernels, "safe_indices", lambda kernel, target: kernel)
        for _ in range(2):
            with pytest.raises(WrongResultError):
                _compiled(_flipped())
    _compiled(_flipped())


def test_a_budget_ends_it_with_a_warning(
    done: list[compiling.Validated], monkeypatch: pytest.MonkeyPatch
) -> None:
    mod = zoo.build("swiftnet-cell-a")
    monkeypatch.setattr(compiling, "TOGETHER", 1)
    with pytest.warns(UserWarning, match=r"of \d+ kernels were not compared with TVM's own: 1e-06"):
        _compiled(mod, validate=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _compiled(mod)
    assert done[0].left > 0
    assert done[0].compared + done[0].left == done[1].compared + done[1].known


def test_sizes_that_are_symbols_are_compared_at_their_largest(
    done: list[compiling.Validated],
) -> None:
    _compiled(_flipped(tvm.tirx.Var("n", "int64"), tir_var_upper_bound={"n": 5}))
    assert done[0].compared >= 2
    assert done[0].left == 0


@pytest.mark.parametrize("value", [-1, float("nan")])
def test_what_is_no_budget_is_refused(value: float) -> None:
    with pytest.raises(InputError, match="validate"):
        serenity_pipeline(validate=value)
    with pytest.raises(InputError, match="validate"):
        SerenityOptions(validate=value)
