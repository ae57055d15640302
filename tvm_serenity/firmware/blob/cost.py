"""The flash and the time of a blob with its kernel set, beside a project of the same model."""

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tvm_serenity.architectures import architecture
from tvm_serenity.boards import Board
from tvm_serenity.errors import CheckError, WrongResultError
from tvm_serenity.firmware.blob.in_qemu import run, slot, write_harness
from tvm_serenity.firmware.blob.kernel_set import KernelSet
from tvm_serenity.firmware.blob.source import set_files
from tvm_serenity.firmware.board.execute import qemu
from tvm_serenity.firmware.board.sizes import sizes
from tvm_serenity.firmware.board.toolchain import cross_compiler, environment, have
from tvm_serenity.firmware.emit.buildfiles import COMMON, flags, linked
from tvm_serenity.firmware.emit.c import sources_of, symbol
from tvm_serenity.firmware.emit.project import Layout, network, write_files
from tvm_serenity.firmware.program import Program
from tvm_serenity.firmware.result import Project

INTERFACE = ("load", "run", "input", "output", "input_count", "output_count")
"""The functions of a loader that an application calls."""


def set_bytes(known: KernelSet, board: Board) -> int:
    """Return the bytes of flash of a kernel set and its loader, with the C library they use."""
    files = {name: text.encode() for name, text in set_files(known).items()}
    return _linked(files, [f"{known.name}_{name}" for name in INTERFACE], board)


def project_bytes(program: Program, layout: Layout) -> int:
    """Return the bytes of flash of a project's code: kernels and calls, without constants."""
    files = {n: data for n, data in network(program, layout).items() if n.endswith((".c", ".h"))}
    entries = [symbol(program, "run")]
    files = {n: files[n] for n in files if n in sources_of(program) or n.endswith(".h")}
    return _linked(files, entries, layout.board) - program.constant_bytes


_SECTIONS = """\
SECTIONS
{
  .text : { *(.text*) }
  .rodata : { *(.rodata*) *(.srodata*) }
  .ARM.exidx : { *(.ARM.exidx*) *(.ARM.extab*) }
  .data : { *(.data*) *(.sdata*) }
  .bss : { *(.bss*) *(.sbss*) *(COMMON) end = .; _end = .; __end = .; }
}
"""
"""A linker script without memories: code is measured, and never loaded."""


@dataclass(frozen=True)
class Instructions:
    """Instructions in QEMU: of a run of the blob, and of the project."""

    blob: int
    project: int


def instructions(
    image: bytes, known: KernelSet, program: Program, project: Project, layout: Layout
) -> Instructions | None:
    """Return the instructions of one run; None if the board is not emulated, has no slot, or no
    inputs are known.

    Raises :class:`WrongResultError` if an output of the blob differs from the project's.
    """
    board = layout.board
    emulator = architecture(board.architecture).toolchain.emulator.program
    if board.qemu is None or not have(emulator, "make") or len(image) > slot(board).size_bytes:
        return None
    if not project.reference:
        return None
    inputs = [array.tobytes() for array in project.reference_inputs()]
    count = len(program.outputs)
    with tempfile.TemporaryDirectory(prefix="serenity.") as made:
        of_blob, of_project = Path(made) / "blob", Path(made) / "project"
        of_blob.mkdir()
        of_project.mkdir()
        write_harness(of_blob, known, program, board, layout.stack_bytes)
        write_files(project.files, of_project)
        ran = run(of_blob, board, image, inputs, count)
        alone = qemu(of_project, board.qemu, inputs, count)
    if ran.outputs != alone.outputs:
        raise WrongResultError(
            f"{program.name}: outputs of the blob on {board.name} are not those of the project"
        )
    assert ran.instructions is not None
    assert alone.instructions is not None
    return Instructions(ran.instructions, alone.instructions)


def _linked(files: Mapping[str, bytes], entries: Sequence[str], board: Board) -> int:
    """Return the bytes of code and constants of C ``files`` that ``entries`` need."""
    compiler = cross_compiler(board.compiler)
    with tempfile.TemporaryDirectory(prefix="serenity.") as made:
        folder = Path(made)
        for name, data in files.items():
            (folder / name).write_bytes(data)
        kept = [f"-Wl,-u,{entry}" for entry in entries]
        (folder / "code.ld").write_text(_SECTIONS)
        words = [*flags(board).split(), *COMMON.split(), *kept, f"-Wl,-e,{entries[0]}"]
        sources = [name for name in files if name.endswith(".c")]
        link = [*linked(board).split(), "-Tcode.ld", "-lm"]
        done = subprocess.run(
            [*compiler, *words, *sources, *link, "-o", "code.elf"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            env=environment(),
        )
        if done.returncode:
            raise CheckError(f"{compiler[0]}: {(done.stderr.splitlines() or ['failed'])[0]}")
        found = sizes(folder / "code.elf")
    return found.code_bytes + found.const_bytes
