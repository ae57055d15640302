"""Any core: portable C that is verified on the host, with a port of four functions of the user."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.run import answer, serenity
from tests.firmware.projects import HELLO, KWS, built, model, needs_host, project
from tvm_serenity.boards import board
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.firmware.board.toolchain import make
from tvm_serenity.firmware.check.verify_report import report
from tvm_serenity.firmware.emit.buildfiles import COMMON
from tvm_serenity.firmware.kernels import sources
from tvm_serenity.firmware.result import load

pytestmark = needs_host

BOARD = "generic:64K:256K"
FILES = {"Makefile", "CMakeLists.txt", "main.c", "harness.c", "port.h", "port_files.h"}
PORT = """
#include "port.h"
#include <stdio.h>
void port_puts(const char *text) { (void)puts(text); }
void port_report(const char *name, uint64_t value) { printf("%s %u\\n", name, (unsigned)value); }
void port_clock_start(void) {}
uint64_t port_clock(void)
{
    static uint64_t now;
    return now += 5u;
}
"""
"""The port as a user writes it."""


@pytest.mark.parametrize("target", [BOARD, "esp32-s3"])
def test_every_tensor_on_the_host(target: str, tmp_path: Path) -> None:
    found = report(project(tmp_path, KWS, target))
    assert found["host"]["identical"]
    assert found["host"]["litert_max_abs_error"] == 0
    assert found["qemu"] is None
    assert found["flash"]["code_bytes"] is None


def test_the_project_has_portable_files_alone() -> None:
    files = built(HELLO, BOARD).files
    assert set(files) >= FILES
    assert not {"startup.c", "link.ld", "port_board.c", "toolchain.cmake"} & set(files)
    text = b"".join(files[name] for name in files if name.endswith((".c", ".h"))).decode()
    outside = re.sub(r"#if defined\(__ARM.*?#(else|endif)", "", text, flags=re.S)
    assert "__asm" not in outside


def test_the_command_builds_runs_and_verifies(tmp_path: Path) -> None:
    words = ("--cpu", "generic", "--ram", "64K", "--flash", "256K", "-o", tmp_path / "out")
    done = serenity("build", model(HELLO), *words)
    assert done.returncode == 0, done.stderr
    assert "no compiler is known for any core" in " ".join(done.stdout.split())
    assert answer("verify", tmp_path / "out")["identical"]
    assert serenity("run", tmp_path / "out").returncode == 0
    for command in ("run", "verify"):
        refused = serenity(command, tmp_path / "out", "--qemu")
        assert refused.returncode == 2
        assert "has no machine in QEMU" in refused.stderr


def test_four_functions_are_the_port_of_the_example(tmp_path: Path) -> None:
    project(tmp_path, HELLO, BOARD)
    (tmp_path / "mine.c").write_text(PORT)
    sources_of = [*tmp_path.glob("net_*.c"), tmp_path / "main.c", tmp_path / "mine.c"]
    command = ["cc", *COMMON.split(), *map(str, sources_of), "-lm", "-o", str(tmp_path / "app")]
    subprocess.run(command, check=True, cwd=tmp_path)
    said = subprocess.run([tmp_path / "app"], capture_output=True, text=True, check=True).stdout
    assert said.split("\n")[:2] == ["ticks 5", "net has run"]


@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")
def test_cmake_builds_the_example(tmp_path: Path) -> None:
    project(tmp_path, HELLO, BOARD)
    for words in (("-B", "made"), ("--build", "made")):
        subprocess.run(["cmake", *words], check=True, cwd=tmp_path, capture_output=True)
    said = subprocess.run([tmp_path / "made" / "net_example"], capture_output=True, check=True)
    assert b"net has run" in said.stdout


def test_goals_that_need_a_compiler_are_refused_by_name(tmp_path: Path) -> None:
    project(tmp_path, HELLO, BOARD)
    with pytest.raises(UnsupportedError, match="any core: no compiler and no emulator is known"):
        make(tmp_path, "harness")
    done = serenity("build", model(HELLO), "--board", BOARD, "--codegen", "llvm", "-o", "x")
    assert done.returncode == 2
    assert "--codegen llvm: LLVM has no target for generic" in " ".join(done.stderr.split())


def test_a_fault_in_a_kernel_is_found_on_the_host(tmp_path: Path) -> None:
    project(tmp_path, KWS, BOARD)
    kernels = tmp_path / "net_kernels.c"
    text = kernels.read_text()
    assert "s00 += x0[i] * a;" in text
    kernels.write_text(text.replace("s00 += x0[i] * a;", "s00 += x0[i] * b;"))
    assert not report(load(tmp_path))["identical"]


@pytest.mark.parametrize(
    ("given", "needed"),
    [
        ("-U__BYTE_ORDER__ -D__BYTE_ORDER__=__ORDER_BIG_ENDIAN__", "needs a little-endian core"),
        ("-U__INT_MAX__ -D__INT_MAX__=32767", "int of 32 bits"),
        ("", ""),
    ],
)
def test_byte_order_and_word_size_are_errors_of_the_compiler(given: str, needed: str) -> None:
    command = ["cc", *given.split(), "-w", "-fsyntax-only", "-x", "c", "-"]
    text = sources.text(sources.BASICS)
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert (done.returncode != 0) == bool(needed)
    assert f'#error "the network needs {needed}' in done.stderr or needed in done.stderr


def test_the_board_says_what_it_is() -> None:
    found = board("esp32-s3")
    assert (found.compiler, found.qemu, found.architecture) == ("", None, "generic")
    assert "portable C" in " ".join(serenity("boards", "esp32-s3").stdout.split())
