"""RISC-V firmware in QEMU: its start, its traps, its count of instructions, and two compilers."""

from pathlib import Path

import pytest

from tests.firmware.projects import HELLO, HELLO_FLOAT, needs_riscv, project
from tvm_serenity.errors import CheckError
from tvm_serenity.firmware.board.execute import qemu
from tvm_serenity.firmware.board.sizes import sizes
from tvm_serenity.firmware.board.toolchain import make
from tvm_serenity.firmware.check.verify_report import report

pytestmark = needs_riscv

BOARD = "rv32imc:16K:128K"
HARNESS = """
#include "port.h"
#include "port_files.h"
static volatile uint32_t set = 7;
static volatile uint32_t zero;
int main(void)
{
    if (set != 7u || zero != 0u) {
        return 1;
    }
    BODY
    const uint64_t begun = port_clock();
    __asm volatile(".rept 1000\\nnop\\n.endr");
    port_report("ticks", port_clock() - begun);
    port_report("stack", port_stack_used());
    port_report("status", 0);
    return port_create("results.bin");
}
"""


def run(folder: Path, body: str = "") -> tuple[int | None, int]:
    """The instructions and the stack of a program of 1000 instructions that ``body`` precedes."""
    project(folder, HELLO, BOARD)
    (folder / "harness.c").write_text(HARNESS.replace("BODY", body))
    found = qemu(folder, "virt", [], 0)
    return found.instructions, found.stack_bytes


def test_the_start_and_the_count_of_instructions(tmp_path: Path) -> None:
    instructions, stack = run(tmp_path)
    assert instructions is not None
    assert 1000 <= instructions <= 1020
    assert 0 < stack < 400


def test_the_stack_is_what_was_used(tmp_path: Path) -> None:
    _, stack = run(tmp_path, "volatile uint8_t used[2000]; used[0] = 1; used[1999] = used[0];")
    assert 2000 < stack < 2400


@pytest.mark.parametrize(
    ("body", "cause", "at"),
    [
        ("*(volatile uint32_t *)0x08000000u = 1;", 7, 0x0800_0000),  # no memory: a store fault
        ('__asm volatile(".word 0xffffffff");', 2, None),  # an illegal instruction
    ],
)
def test_a_trap_is_told(body: str, cause: int, at: int | None, tmp_path: Path) -> None:
    with pytest.raises(CheckError, match=rf"status 99: FAULT mcause {cause:08x} mepc 8") as said:
        run(tmp_path, body)
    if at is not None:
        assert f"mtval {at:08x}" in str(said.value)


def test_kernels_of_llvm(tmp_path: Path) -> None:
    found = report(project(tmp_path, HELLO, BOARD, codegen="llvm"))
    assert found["qemu"]["identical"]
    assert found["host"] is None


def test_the_image_has_nothing_in_data_and_fits_the_sizes(tmp_path: Path) -> None:
    project(tmp_path, HELLO, BOARD)
    make(tmp_path, "all")
    found = sizes(tmp_path / "build" / "firmware.elf")
    assert found.data_bytes == 0
    assert 0 < found.arena_bytes <= 48
    assert 0 < found.code_bytes + found.const_bytes <= found.flash_bytes < 4_000


@pytest.mark.parametrize(
    ("core", "name", "without"),
    [
        ("rv32imac_zba_zbb", HELLO, "zba=false,zbb=false"),
        ("rv32imafc", HELLO_FLOAT, "f=false,d=false"),
    ],
)
def test_further_instructions_are_used(core: str, name: str, without: str, tmp_path: Path) -> None:
    """The network is right with them, and traps on a core that lacks them."""
    made = project(tmp_path, name, f"{core}:16K:128K")
    assert report(made)["qemu"]["identical"]
    inputs = [a.tobytes() for a in made.reference_inputs()]
    with pytest.raises(CheckError, match="FAULT mcause 00000002"):
        qemu(tmp_path, "virt", inputs, 1, options=("-cpu", f"rv32,{without}"))
