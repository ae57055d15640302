"""The flash and RAM of a linked firmware, by section."""

from dataclasses import dataclass
from pathlib import Path

from tvm_serenity.architectures import TOOLCHAINS
from tvm_serenity.cycles.elf import program
from tvm_serenity.firmware.emit.linker import CODE, CONSTANTS, VECTORS

UNWINDING = tuple(name for one in TOOLCHAINS.values() for name in one.sections.more)
FLASH = (VECTORS, CODE, CONSTANTS, *UNWINDING)
"""Sections in flash; the initial values of data follow them."""


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
    sections = program(elf).sections
    size = {s.name: s.size_bytes for s in sections}
    held = [s for s in sections if s.name in FLASH]
    get = size.get
    end = max((s.address + s.size_bytes for s in held), default=0)
    first = min((s.address for s in held), default=0)
    return Sizes(
        sum(get(name, 0) for name in (CODE, VECTORS, *UNWINDING)),
        get(CONSTANTS, 0) + get(".data", 0),
        get(".data", 0),
        get(".bss", 0),
        sum(n for name, n in size.items() if name.startswith(".arena_")),
        end - first + get(".data", 0),
    )
