"""What a linked firmware takes: flash and RAM by section."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tvm_serenity.firmware.toolchain import require


@dataclass(frozen=True)
class Sizes:
    """Bytes of a firmware: code and constants in flash, data, bss and arenas in RAM."""

    code_bytes: int
    const_bytes: int
    data_bytes: int
    bss_bytes: int
    arena_bytes: int

    @property
    def flash_bytes(self) -> int:
        """All that lies in flash."""
        return self.code_bytes + self.const_bytes


def sizes(elf: Path) -> Sizes:
    """Return the sizes of the sections of ``elf``; initial values of data count as constants."""
    require("arm-none-eabi-size")
    text = subprocess.run(
        ["arm-none-eabi-size", "-A", str(elf)], capture_output=True, text=True, check=True
    ).stdout
    section = {
        line.split()[0]: int(line.split()[1])
        for line in text.splitlines()
        if line.startswith(".") and len(line.split()) >= 2
    }
    get = section.get
    return Sizes(
        get(".text", 0) + get(".vectors", 0) + get(".ARM.exidx", 0),
        get(".rodata", 0) + get(".data", 0),
        get(".data", 0),
        get(".bss", 0),
        sum(size for name, size in section.items() if name.startswith(".arena_")),
    )
