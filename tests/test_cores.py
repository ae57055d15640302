"""A core is one file: what the boards, kernels, prices and compilers know of it."""

import subprocess
from pathlib import Path

import pytest

from tests.cli.run import answer, serenity
from tests.docs.pages import blocks
from tests.firmware.projects import KWS, model
from tests.test_boards import GOOD
from tvm_serenity.architectures import architecture
from tvm_serenity.boards import board, names
from tvm_serenity.cores import INSTRUCTIONS, core_files, core_model
from tvm_serenity.cycles.board import COUNTS
from tvm_serenity.cycles.core import core_names
from tvm_serenity.cycles.estimate import claim_of
from tvm_serenity.errors import InputError, UnsupportedError
from tvm_serenity.firmware import isa
from tvm_serenity.firmware.board import compiler, toolchain
from tvm_serenity.firmware.board.compiler import check_compiler
from tvm_serenity.firmware.emit.buildfiles import toolchain_file
from tvm_serenity.firmware.isa import Extensions
from tvm_serenity.firmware.kernels.prices import prices_of, unit_of
from tvm_serenity.firmware.lower.llvm import check_core, llvm_target

OF_CORE = "fpu = true\ndsp = true\nmve = false\n"
TOOLS = '[toolchain]\ngcc = "-mcpu=cortex-m4"\nllvm_triple = "thumbv7em-unknown-none-eabihf"\n'
SHORT = GOOD.replace(OF_CORE, "").replace(TOOLS, "")
"""A board that leaves to the file of its core what stands there."""

MINE = """
name = "mine-m99"
title = "A core of the test's own"
source = "the test"
[isa]
instructions = ["thumb2", "dsp"]
architecture = "arm"
gcc = "-mcpu=cortex-m99"
llvm_triple = "thumbv7em-unknown-none-eabi"
prices = "cortex-m4"
[[isa.without]]
instructions = ["dsp"]
gcc = "-mcpu=cortex-m99+nodsp"
llvm_attributes = ["-dsp"]
prices = "cortex-m3"
"""


def written(folder: Path, core: str, more: str = "") -> str:
    """The path of a board whose core is named ``core``."""
    path = folder / "mine.toml"
    path.write_text(SHORT.replace('name = "cortex-m4"\n', f'name = "{core}"\n{more}'))
    return str(path)


def test_a_board_without_them_has_the_instructions_and_flags_of_its_core(tmp_path: Path) -> None:
    found, known = board(written(tmp_path, "cortex-m4")), core_model("cortex-m4").variants[0]
    assert (found.gcc, found.llvm_triple) == (known.gcc, known.llvm_triple)
    assert set(found.core.instructions) == set(known.instructions)
    less = board(written(tmp_path, "cortex-m33", "dsp = false\nfpu = false\n"))
    assert less.gcc == "-mcpu=cortex-m33+nofp+nodsp -mthumb -mfloat-abi=soft"
    assert llvm_target(less)["mattr"] == ["+soft-float", "-dsp"]
    assert Extensions.of(less.core) == Extensions(thumb=2, name="cortex-m3")


@pytest.mark.parametrize("name", core_files())
def test_every_core_has_prices_and_every_variant_compiles(name: str) -> None:
    found = core_model(name)
    assert found.name == name
    assert found.source
    known = architecture(found.architecture).known_toolchain
    cross = "" if known is None else known.compiler
    for variant in found.variants:
        assert prices_of(variant.prices) is not None
        assert set(variant.instructions) <= set(INSTRUCTIONS)
        if not cross:
            continue
        said = compiler._said((cross,), tuple(variant.gcc.split()), "here")
        newer = toolchain.have(cross) and "unrecognized -mcpu target" in said
        if not toolchain.have(cross) or (newer and name == "cortex-m85"):
            continue
        assert not said, variant.gcc
    if found.qemu is not None:
        assert found.qemu in {board(one).qemu for one in names()}
    assert found.cycles in ("", *core_files())


def test_the_cortex_m85_is_one_file_that_is_priced_as_the_m55(tmp_path: Path) -> None:
    found = board(written(tmp_path, "cortex-m85"))
    assert Extensions.of(found.core) == Extensions(vectors=True, name="cortex-m55")
    assert unit_of(Extensions.of(found.core)) == "instructions"
    assert found.core.cycles == "cortex-m55"
    assert found.core.cycles not in core_names()
    assert claim_of(found) == COUNTS
    check_core(found)  # LLVM knows it


def test_a_core_beside_its_board(tmp_path: Path) -> None:
    (tmp_path / "m99.toml").write_text(MINE)
    found = board(written(tmp_path, "m99.toml"))
    assert found.core.name == "mine-m99"
    assert found.gcc == "-mcpu=cortex-m99"
    assert Extensions.of(found.core) == Extensions(dsp=True, name="cortex-m4")
    less = board(written(tmp_path, "m99.toml", "dsp = false\n"))
    assert (less.gcc, less.core.prices) == ("-mcpu=cortex-m99+nodsp", "cortex-m3")
    with pytest.raises(UnsupportedError, match=r"mine-m99, .* with --codegen c"):
        check_core(found)


WRONG = [
    ('["thumb2", "dsp"]', '["thumb2", "dps"]', "'instructions' has 'dps'; there are thumb1"),
    ("[isa]", "[cpu]", "unknown key 'cpu'"),
    ('architecture = "arm"\n', "", r"\[isa\]: 'architecture' is missing"),
    ('architecture = "arm"', 'architecture = "mips"', "choose one of arm, riscv, generic"),
    ('gcc = "-mcpu=cortex-m99"\n', "", r"\[isa\]: 'gcc' is missing"),
    ('instructions = ["dsp"]', 'instructions = ["mve"]', "has 'mve'; there are thumb2, dsp"),
    ("[[isa.without]]", "[[isa.with]]", "unknown key 'with'"),
]


@pytest.mark.parametrize(("old", "new", "reason"), WRONG, ids=[w[2][:30] for w in WRONG])
def test_what_is_wrong_in_a_core_is_named(tmp_path: Path, old: str, new: str, reason: str) -> None:
    assert old in MINE
    (tmp_path / "m99.toml").write_text(MINE.replace(old, new))
    with pytest.raises(InputError, match=rf"m99\.toml.*{reason}"):
        board(written(tmp_path, "m99.toml"))


def test_a_core_that_is_not_known_and_what_it_cannot_leave_out(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"unknown core 'cortex-m99'; there are .*\[isa"):
        board(written(tmp_path, "cortex-m99"))
    with pytest.raises(InputError, match=r"cortex-m4 with thumb2, fpu: no compiler flags"):
        board(written(tmp_path, "cortex-m4", "dsp = false\n"))
    with pytest.raises(InputError, match=r"cortex-m4 with thumb2, dsp, mve, fpu: no compiler"):
        board(written(tmp_path, "cortex-m4", "mve = true\n"))


needs_gcc = pytest.mark.skipif(
    not toolchain.have("arm-none-eabi-gcc"), reason="arm-none-eabi-gcc is not installed"
)


@needs_gcc
def test_build_refuses_a_core_that_the_compiler_does_not_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tvm_serenity.firmware.compile import model as models

    def read(*_: object) -> None:
        raise AssertionError("the model is read before the compiler is asked")

    monkeypatch.setattr(models, "opened", read)
    (tmp_path / "m99.toml").write_text(MINE)
    on = written(tmp_path, "m99.toml")
    done = serenity("build", model(KWS), "--board", on, "-o", tmp_path / "out")
    assert done.returncode == 2
    said = " ".join(done.stderr.split())
    assert "arm-none-eabi-gcc does not compile for mine-m99, the core of mine" in said
    assert "unrecognized -mcpu target: cortex-m99" in said
    assert "[toolchain] gcc" in said
    assert not (tmp_path / "out").exists()


@needs_gcc
def test_the_compiler_of_the_environment_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "m99.toml").write_text(MINE)
    found = board(written(tmp_path, "m99.toml"))
    knows = tmp_path / "knows-gcc"
    knows.write_text("#!/bin/sh\nexit 0\n")
    knows.chmod(0o755)
    with pytest.raises(UnsupportedError, match="arm-none-eabi-gcc does not compile"):
        check_compiler(found)
    monkeypatch.setenv("CROSS", f"{tmp_path}/knows-")
    check_compiler(found)
    monkeypatch.delenv("CROSS")
    monkeypatch.setenv("CC", str(knows))
    check_compiler(found)
    assert subprocess.run([knows], check=False).returncode == 0


def test_boards_shows_what_the_core_executes() -> None:
    found = answer("boards", "mps2-an521")["mps2-an521"]
    assert found["core"]["instructions"] == ["thumb2"]
    assert found["compiler"] == "arm-none-eabi-gcc"
    assert "thumb2, dsp, fpu" in serenity("boards", "nrf52840-dk").stdout


def test_the_core_of_the_page_is_the_one_that_comes_with_the_package(tmp_path: Path) -> None:
    pages = ("docs/how-to/board.md", "docs/how-to/core.md")
    of_board, of_core = (b.text for p in pages for b in blocks(p) if b.language == "toml")
    (tmp_path / "mine.toml").write_text(of_board)
    (tmp_path / "m85.toml").write_text(of_core)
    assert board(str(tmp_path / "mine.toml")).gcc == board("nrf52840-dk").gcc
    assert core_model("m85.toml", tmp_path).variants == core_model("cortex-m85").variants


RISCV = """
name = "rv32imc"
title = "A core of another kind"
source = "the test"
[isa]
instructions = []
architecture = "riscv"
gcc = "-march=rv32imc -mabi=ilp32"
llvm_triple = "riscv32-unknown-none-elf"
"""


def test_a_core_of_another_kind_has_kernels_in_c_and_its_own_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rv.toml").write_text(RISCV)
    found = board(written(tmp_path, "rv.toml"))
    assert Extensions.of(found.core) == isa.PLAIN
    assert (found.core.prices, found.core.cycles, unit_of(Extensions.of(found.core))) == (
        "",
        "",
        "",
    )
    said = toolchain_file(found)
    assert "set(CMAKE_C_COMPILER riscv64-unknown-elf-gcc)" in said
    assert "set(CMAKE_SYSTEM_PROCESSOR riscv64)" in said
    assert 'set(CMAKE_C_FLAGS_INIT "-march=rv32imc -mabi=ilp32 --specs=picolibc.specs")' in said
    monkeypatch.setenv("PATH", str(tmp_path))
    check_compiler(found)  # one that is missing refuses nothing
