"""A project linked for its board: what its code takes, and whether all of it fits."""

from dataclasses import replace
from pathlib import Path

from tvm_serenity.boards import Board
from tvm_serenity.firmware.emit.linker import linker_script
from tvm_serenity.firmware.program import Program
from tvm_serenity.firmware.sizes import sizes
from tvm_serenity.firmware.toolchain import have, make

TOOLS = ("make", "arm-none-eabi-gcc", "arm-none-eabi-size")
GOAL = "build/firmware.elf"
APART, WIDER = 0x1000_0000, 0x0800_0000


def linkable() -> bool:
    """Whether the tools that make an image for a board are installed."""
    return have(*TOOLS)


def measured(directory: Path, program: Program, board: Board, stack_bytes: int) -> int:
    """Return the bytes of flash that the project in ``directory`` takes, constants included.

    It is linked for memories that are large enough, so that what does not fit is measured, too.
    """
    script, image = directory / "measured.ld", directory / GOAL
    script.write_text(linker_script(program, _roomy(board), stack_bytes))
    make(directory, GOAL, variables=[f"SCRIPT={script.name}"])
    taken = sizes(image).flash_bytes
    for made in (script, image, image.with_suffix(".map")):
        made.unlink()
    return taken


def linked(directory: Path) -> None:
    """Link the project for the memories of its board.

    Raises :class:`CheckError` with the linker's first complaint where it does not fit.
    """
    make(directory, "all")


def _roomy(board: Board) -> Board:
    """``board`` with larger memories, apart from each other, in the same order of sizes."""
    regions = tuple(
        replace(r, address=i * APART, size_bytes=r.size_bytes + WIDER)
        for i, r in enumerate(board.regions)
    )
    return replace(board, regions=regions)
