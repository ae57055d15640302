"""Programs of a test that call kernels on an emulated core, with a project's start-up and port."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from tvm_serenity.architectures import architecture
from tvm_serenity.boards import Board, board
from tvm_serenity.cores import core_model
from tvm_serenity.firmware.board import execute
from tvm_serenity.firmware.emit.buildfiles import flags, linked
from tvm_serenity.firmware.emit.linker import linker_script
from tvm_serenity.firmware.emit.sources import board_port, kernels_header, kernels_source
from tvm_serenity.firmware.program import Program

FLAGS = "-O2 -std=gnu11 -Wall -Wextra -Werror"
MACHINES = {
    "cortex-m0plus": "mps2-an385",
    "cortex-m3": "mps2-an385",
    "cortex-m4": "mps2-an386",
    "cortex-m55": "mps3-an547",
    "rv32imc": "qemu-virt",
}
"""A board with ample memory whose machine runs the programs of a core."""


def machine(core: str) -> Board:
    """A board whose programs are compiled for ``core``."""
    return replace(board(MACHINES[core]), gcc=core_model(core).variants[0].gcc)


@contextmanager
def fault(text: str, other: str) -> Iterator[None]:
    """Have programs of kernels contain ``other`` in place of ``text``, which they must have."""
    unchanged = kernels_source

    def changed(program: Program) -> str:
        source = unchanged(program)
        assert text in source
        return source.replace(text, other)

    with patch(f"{__name__}.kernels_source", changed):
        yield


def said(target: Board, program: Program, main: str, folder: Path) -> str:
    """What ``main``, which calls the kernels of ``program``, prints in QEMU."""
    family = architecture(target.architecture)
    for name, text in board_port(target.architecture).items():
        (folder / name).write_text(text)
    (folder / "net_kernels.h").write_text(kernels_header(program))
    (folder / "net_kernels.c").write_text(kernels_source(program))
    (folder / "main.c").write_text(main)
    (folder / "link.ld").write_text(linker_script(program, target, 4096))
    command = f"{target.compiler} {flags(target)} {FLAGS} {linked(target)} -T link.ld"
    files = ("net_kernels.c", "main.c", "startup.c", "port_board.c", "-lm", "-o", "all.elf")
    done = subprocess.run([*command.split(), *files], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert target.qemu is not None
    run = [*execute.emulated(family.toolchain.emulator, target.qemu), "-kernel", "all.elf"]
    ran = subprocess.run(run, cwd=folder, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr
