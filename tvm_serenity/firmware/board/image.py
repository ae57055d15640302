"""Link a project for its board, to measure its code and to check whether it fits."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tvm_serenity.architectures import architecture
from tvm_serenity.boards import Board
from tvm_serenity.firmware.board.sizes import sizes
from tvm_serenity.firmware.board.toolchain import have, make
from tvm_serenity.firmware.emit.linker import linker_script
from tvm_serenity.firmware.emit.opaque import STUB, stub
from tvm_serenity.firmware.program import Program

GOAL = "build/firmware.elf"
APART, WIDER = 0x1000_0000, 0x0800_0000


def linkable(family: str) -> bool:
    """Return whether the tools that link an image for an architecture are installed."""
    known = architecture(family).known_toolchain
    return known is not None and have("make", known.compiler)


def measured(directory: Path, program: Program, board: Board, stack_bytes: int) -> int:
    """Return the bytes of flash that the project in ``directory`` takes, including constants.

    It is linked for enlarged memories, so that a program that does not fit is measured too.
    """
    script, image = directory / "measured.ld", directory / GOAL
    script.write_text(linker_script(program, _roomy(board), stack_bytes))
    with _stubbed(directory, program) as variables:
        make(directory, GOAL, variables=[f"SCRIPT={script.name}", *variables])
    taken = sizes(image).flash_bytes
    for made in (script, image, image.with_suffix(".map")):
        made.unlink()
    return taken


def linked(directory: Path, program: Program) -> None:
    """Link the project for the memories of its board.

    An image that contains stubs instead of the user's functions is deleted. Raises
    :class:`CheckError` with the linker's first error if it does not fit.
    """
    with _stubbed(directory, program) as variables:
        make(directory, "all", variables=variables)
    if program.users:
        shutil.rmtree(directory / "build")


@contextmanager
def _stubbed(directory: Path, program: Program) -> Iterator[list[str]]:
    """Write stubs for the user's functions; yield the variables for make."""
    if not program.users:
        yield []
        return
    written = directory / STUB
    written.write_text(stub(program))
    try:
        yield [f"OPAQUE={STUB}"]
    finally:
        written.unlink()


def _roomy(board: Board) -> Board:
    """Return ``board`` with larger, disjoint memories in the same order of sizes."""
    regions = tuple(
        replace(r, address=i * APART, size_bytes=r.size_bytes + WIDER)
        for i, r in enumerate(board.regions)
    )
    return replace(board, regions=regions)
