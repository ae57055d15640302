"""Runs a blob on a board in QEMU: the firmware is linked once, the blob lies in a slot of flash."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tvm_serenity.boards import Board, MemoryRegion
from tvm_serenity.errors import CheckError
from tvm_serenity.firmware.blob.kernel_set import KernelSet
from tvm_serenity.firmware.blob.source import harness_source, set_files
from tvm_serenity.firmware.board.execute import Execution, qemu
from tvm_serenity.firmware.emit.buildfiles import COMMON, flags, linked
from tvm_serenity.firmware.emit.linker import linker_script
from tvm_serenity.firmware.emit.programs import OUTPUT_TAG
from tvm_serenity.firmware.emit.project import METADATA, write_files
from tvm_serenity.firmware.emit.sources import board_port
from tvm_serenity.firmware.program import Program

BLOB = "slot.blob"


def slot(board: Board) -> MemoryRegion:
    """Return the upper half of the board's flash, where the harness looks for a blob."""
    flash = max((r for r in board.regions if r.kind == "flash"), key=lambda r: r.size_bytes)
    half = flash.size_bytes // 2
    return replace(flash, address=flash.address + half, size_bytes=half)


def write_harness(
    folder: Path, known: KernelSet, program: Program, board: Board, stack_bytes: int
) -> None:
    """Write the firmware that runs blobs of ``known``; its arena is where ``program`` has its own.

    The folder has a Makefile with the goal ``harness``, as projects have.
    """
    family = board.architecture
    region = max(program.arena_bytes, key=lambda name: program.arena_bytes[name])
    placed = replace(program, name=known.name, arena_bytes={region: known.arena_bytes})
    texts = {
        **set_files(known),
        "harness.c": harness_source(known, region),
        "link.ld": linker_script(placed, board, stack_bytes),
        **board_port(family),
        METADATA: json.dumps({"architecture": family}),
    }
    sources = " ".join(name for name in texts if name.endswith(".c"))
    headers = " ".join(name for name in texts if name.endswith(".h"))
    where = slot(board)
    texts["Makefile"] = (
        f"CC := {board.compiler}\n.PHONY: harness\nharness: build/harness.elf\n"
        f"build/harness.elf: {sources} {headers} link.ld\n\tmkdir -p build\n"
        f"\t$(CC) {flags(board)} {COMMON} -DSLOT={where.address:#x}u -DROOM={where.size_bytes}u "
        f"-DOUTPUT_TAG={OUTPUT_TAG:#x}u "
        f"{sources} -Tlink.ld {linked(board)} -lm -o $@\n"
    )
    write_files({name: text.encode() for name, text in texts.items()}, folder)


def run(
    folder: Path, board: Board, image: bytes, inputs: Sequence[bytes], output_count: int
) -> Execution:
    """Return a run of ``image`` by the firmware that :func:`write_harness` wrote.

    Raises :class:`CheckError` if the loader refuses the blob: the message has ``refused`` and the
    number of the reason.
    """
    assert board.qemu is not None
    where = slot(board)
    if len(image) > where.size_bytes:
        raise CheckError(f"{board.name}: a blob of {len(image):,} bytes exceeds its slot in QEMU")
    file = (folder / BLOB).resolve()
    file.write_bytes(image)
    placed = f"loader,file={file},addr={where.address:#x},force-raw=on"
    return qemu(folder, board.qemu, inputs, output_count, options=("-device", placed))
