"""Targets by what users write, and the tiles that their registers hold."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.run import serenity
from tests.rows.nets import model
from tvm_serenity.errors import InputError

AVX512 = "fpu sse sse2 avx avx2 fma avx512f avx512bw avx512cd avx512dq avx512vl"
SPEECH = "tflm/micro_speech_quantized.tflite"


def test_native_is_the_processor_of_this_machine() -> None:
    import tvm

    from tvm_serenity.tvm_targets import current, named, native, target_of

    cpu = str(tvm.get_global_func("target.llvm_get_system_cpu")())
    assert named(target_of("native")).endswith(f"-mcpu={cpu}")
    assert "-mcpu" not in named(target_of("llvm"))
    assert str(current()) == str(native())
    with tvm.target.Target("llvm"):
        assert named(current()) == named(target_of("llvm"))
    haswell = target_of('{"kind": "llvm", "mcpu": "haswell"}')
    assert named(haswell).endswith("-mcpu=haswell")
    for text in ("bogus", "{", '{"kind": "bogus"}'):
        with pytest.raises(InputError, match="--target"):
            target_of(text)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (f"{AVX512} avx512_vnni", "cascadelake"),
        (AVX512, "x86-64-v4"),
        ("fpu sse sse2 avx avx2 fma", "x86-64-v3"),
        ("fpu sse sse2", "x86-64-v2"),
    ],
)
def test_instructions_that_a_virtual_machine_hides_are_not_used(
    flags: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tvm

    from tvm_serenity import tvm_targets

    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nflags\t\t: {flags}\n")
    monkeypatch.setattr(tvm_targets, "CPUINFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(tvm, "get_global_func", _as_cascadelake(tvm.get_global_func))
    found = tvm_targets.native.__wrapped__()
    assert tvm_targets.named(found).endswith(f"-mcpu={expected}")


def _as_cascadelake(known: Any) -> Any:
    def function(name: str, allow_missing: bool = False) -> Any:
        if name == "target.llvm_get_system_cpu":
            return lambda: "cascadelake"
        return known(name, allow_missing)

    return function


def test_tiles_are_those_that_registers_hold() -> None:
    from tvm_serenity.kernels.tile import HOST, MCU, WIDE, tiling_for
    from tvm_serenity.tvm_targets import target_of

    tiles = {
        "skylake-avx512": WIDE,
        "haswell": HOST,
        "x86-64": HOST,
    }
    for cpu, tiling in tiles.items():
        assert tiling_for(target_of(f'{{"kind": "llvm", "mcpu": "{cpu}"}}')) == tiling
    assert tiling_for(target_of('{"kind": "llvm", "mtriple": "thumbv7em-none-eabi"}')) == MCU


def test_compile_says_its_target() -> None:
    found = serenity("compile", str(model(SPEECH)), "--no-check", "--target", "llvm")
    assert found.returncode == 0, found.stderr
    assert "llvm" in found.stdout
    assert "-mcpu" not in found.stdout
    native = serenity("compile", str(model(SPEECH)), "--no-check")
    assert "-mcpu=" in native.stdout.replace("\n", "")
    wrong = serenity("compile", str(model(SPEECH)), "--target", "bogus")
    assert wrong.returncode == 2
    assert wrong.stderr.count("\n") == 1
    assert "--target bogus" in wrong.stderr


def test_images_have_channels_last_where_that_needs_no_more_memory() -> None:
    from tvm_serenity import zoo
    from tvm_serenity.memory import peak_bytes
    from tvm_serenity.relax.pipeline import Steps, prepared, prepared_for_host
    from tvm_serenity.relax.read import read_function
    from tvm_serenity.tvm_targets import native

    module = zoo.build("mobilenet-v2?size=96")
    needs = {}
    for layout in ("given", "last"):
        made = prepared(module, Steps(layout=layout), native())
        needs[layout] = peak_bytes(read_function(made.kernels).graph)
    found = prepared_for_host(module, Steps(), native())
    assert peak_bytes(read_function(found.kernels).graph) == min(needs.values())
    assert found.steps.layout == ("last" if needs["last"] <= needs["given"] else "auto")
    given = prepared_for_host(module, Steps(layout="given"), native())
    assert given.steps.layout == "given"


def _pretend(flags: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tvm_serenity import tvm_targets

    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nflags\t\t: {flags}\n")
    monkeypatch.setattr(tvm_targets, "CPUINFO", tmp_path / "cpuinfo")


def test_a_library_is_not_loaded_where_instructions_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import json

    import numpy as np
    import tvm

    from tvm_serenity.errors import UnsupportedError
    from tvm_serenity.runtime import library

    out = tmp_path / "out"
    assert serenity("compile", str(model(SPEECH)), "--no-check", "-o", str(out)).returncode == 0
    machine = library.load(out)
    x = np.zeros((1, 49, 40, 1), np.int8)
    assert machine["main"](tvm.runtime.tensor(x.reshape(1, -1))).numpy().shape == (1, 4)
    report = json.loads((out / "report.json").read_text())
    if report["needs"]["instructions"]:
        _pretend("fpu sse", tmp_path, monkeypatch)
        with pytest.raises(UnsupportedError, match=report["needs"]["instructions"][-1]):
            library.load(out)
    report["needs"]["architecture"] = "riscv64"
    (out / "report.json").write_text(json.dumps(report))
    with pytest.raises(UnsupportedError, match="is for riscv64"):
        library.load(out)
    (out / "report.json").write_text("{}")
    with pytest.raises(InputError, match="not a report"):
        library.load(out)


def test_instructions_are_those_of_the_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tvm_serenity import tvm_targets
    from tvm_serenity.errors import UnsupportedError

    haswell = tvm_targets.target_of('{"kind": "llvm", "mcpu": "haswell"}')
    wanted = tvm_targets.instructions(haswell)
    assert {"avx2", "fma"} <= set(wanted)
    assert "avx512f" not in wanted
    assert (
        tvm_targets.instructions(tvm_targets.target_of('{"kind": "llvm", "mcpu": "x86-64"}')) == ()
    )
    _pretend(" ".join(w for w in wanted if w != "fma"), tmp_path, monkeypatch)
    own = tvm_targets.architecture(haswell)
    with pytest.raises(UnsupportedError, match="lacks: fma;"):
        tvm_targets.check_runs_here("it", own, wanted)
    arm = tvm_targets.target_of('{"kind": "llvm", "mtriple": "aarch64-linux-gnu"}')
    assert tvm_targets.architecture(arm) == "aarch64"


def test_compile_and_tune_refuse_another_architecture() -> None:
    other = '{"kind": "llvm", "mtriple": "riscv64-linux-gnu"}'
    for words in (("compile", str(model(SPEECH))), ("tune", str(model(SPEECH)), "-o", "t.json")):
        found = serenity(*words, "--target", other)
        assert found.returncode == 2
        assert found.stderr.count("\n") == 1
        assert "is for riscv64" in found.stderr
