"""The flash and RAM of a linked firmware, by section."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tvm_serenity.firmware.board.toolchain import require

FLASH = (".vectors", ".text", ".rodata", ".ARM.exidx")
"""Sections in flash, the first at its start; the initial values of data follow them."""


@dataclass(frozen=True)
class Sizes:
    """Bytes of firmware: code and constants in flash; data, bss and arenas in RAM.

    ``flash_bytes``: all used flash, including gaps between sections.
    """

    code_bytes: int
    const_bytes: int
    data_bytes: int
    bss_bytes: int
    arena_bytes: int
    flash_bytes: int


def sizes(elf: Path) -> Sizes:
    """Return the sizes of the sections of ``elf``; initial values of data count as constants."""
    require("arm-none-eabi-size")
    text = subprocess.run(
        ["arm-none-eabi-size", "-A", str(elf)], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split() for line in text.splitlines() if line.startswith(".")]
    size = {row[0]: int(row[1]) for row in rows if len(row) >= 3}
    start = {row[0]: int(row[2]) for row in rows if len(row) >= 3}
    get = size.get
    end = max((start[name] + size[name] for name in FLASH if name in size), default=0)
    first = min((start[name] for name in FLASH if name in size), default=0)
    return Sizes(
        get(".text", 0) + get(".vectors", 0) + get(".ARM.exidx", 0),
        get(".rodata", 0) + get(".data", 0),
        get(".data", 0),
        get(".bss", 0),
        sum(n for name, n in size.items() if name.startswith(".arena_")),
        end - first + get(".data", 0),
    )
