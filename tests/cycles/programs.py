"""Small programs in assembly, and a board without waits to run them on."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tvm_serenity.boards import Board, board
from tvm_serenity.firmware.board.toolchain import have

needs_compiler = pytest.mark.skipif(
    not have("arm-none-eabi-gcc"), reason="arm-none-eabi-gcc is not installed"
)

MEMORIES = """
[[regions]]
name = "flash"
kind = "flash"
address = 0x08000000
size_bytes = 65536
[[regions]]
name = "sram"
kind = "sram"
address = 0x20000000
size_bytes = 65536
[timing]
class = "modelled"
error_percent = 20
source = "the test"
"""
"""Two regions, and the head of a timing model."""

BOARD = (
    """
title = "a test's"
source = "the test"
[core]
name = "{core}"
fpu = true
dsp = true
mve = false
clock_mhz = 100
alignment_bytes = 16
[toolchain]
gcc = "-mcpu=cortex-m4"
llvm_triple = "thumbv7em-unknown-none-eabihf"
"""
    + MEMORIES
)

FLASH = """
[[timing.memories]]
region = "flash"
read_bytes = 8
wait_states = [[100, {waits}], [200, 9]]
source = "the test"
{more}
"""

SETUP = """
 movw r1, #0
 movt r1, #0x2000
 movw r2, #256
 movt r2, #0x2000
 mov r3, #4
 mov r5, #1
 mov r6, #0x80000000
 movw r7, #1
 movt r7, #0x2000
 movw r8, #2
 movt r8, #0x2000
"""


def made_board(folder: Path, *, waits: int = 0, more: str = "", core: str = "cortex-m4") -> Board:
    """Return a board whose flash has ``waits``; ``more`` is TOML that follows."""
    path = folder / f"board{waits}.toml"
    path.write_text(BOARD.format(core=core) + FLASH.format(waits=waits, more=more))
    return board(str(path))


def assemble(folder: Path, functions: Mapping[str, str], cpu: str = "cortex-m4") -> Path:
    """Return an ELF of functions in assembly; each keeps what it changes and returns."""
    text = ".syntax unified\n.thumb\n.text\n"
    for name, body in functions.items():
        text += f".global {name}\n.thumb_func\n.type {name}, %function\n.align 3\n{name}:\n{body}\n"
    source, elf = folder / "programs.S", folder / "programs.elf"
    source.write_text(text)
    command = [
        "arm-none-eabi-gcc",
        f"-mcpu={cpu}",
        "-mthumb",
        "-nostdlib",
        "-Wa,-mimplicit-it=never",
    ]
    if cpu in ("cortex-m4", "cortex-m7", "cortex-m33"):
        command += ["-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"]
    command += ["-Wl,-Ttext=0x08000000", f"-Wl,-e,{next(iter(functions))}", str(source)]
    subprocess.run([*command, "-o", str(elf)], check=True, capture_output=True)
    return elf


def loop(body: str, count: int) -> str:
    """Return a function that runs ``body`` ``count`` times, its first instruction aligned."""
    lines = "\n ".join(body.split("; "))
    return (
        f" push {{r4-r11, lr}}\n{SETUP} movw r12, #{count}\n .align 3\n1:\n {lines}\n"
        " subs r12, #1\n bne 1b\n pop {r4-r11, pc}\n"
    )


RISCV_BOARD = (
    """
title = "a test's"
source = "the test"
[core]
name = "{core}"
clock_mhz = 100
alignment_bytes = 16
"""
    + MEMORIES
    + """[[timing.memories]]
region = "flash"
wait_states = [[200, 0]]
source = "the test"
"""
)


def riscv_board(folder: Path, core: str) -> Board:
    """Return a board with a RISC-V core and memory without waits."""
    path = folder / f"{core}-board.toml"
    path.write_text(RISCV_BOARD.format(core=core))
    return board(str(path))


def assemble_riscv(folder: Path, functions: Mapping[str, str]) -> Path:
    """Return an ELF of functions in assembly for RV32IMAC."""
    text = ".text\n.option norvc\n"
    for name, body in functions.items():
        text += f".global {name}\n.type {name}, %function\n.align 3\n{name}:\n{body}\n"
    source, elf = folder / "programs.S", folder / "programs.elf"
    source.write_text(text)
    command = [
        "riscv64-unknown-elf-gcc",
        "-march=rv32imac_zicsr_zifencei",
        "-mabi=ilp32",
        "-nostdlib",
    ]
    command += ["-Wl,-n", "-Wl,-Ttext=0x08000000", f"-Wl,-e,{next(iter(functions))}", str(source)]
    subprocess.run([*command, "-o", str(elf)], check=True, capture_output=True)
    return elf


def riscv_loop(body: str, count: int) -> str:
    """Return a function that runs ``body`` ``count`` times, its first instruction aligned.

    a1 and a2 hold addresses in RAM, a3 is 4, a5 is 1 and a6 is the most negative number.
    """
    lines = "\n ".join(body.split("; "))
    return (
        " lui a1, 0x20000\n addi a2, a1, 256\n li a3, 4\n li a5, 1\n lui a6, 0x80000\n"
        f" li t0, {count}\n .align 3\n1:\n {lines}\n addi t0, t0, -1\n bnez t0, 1b\n ret\n"
    )
