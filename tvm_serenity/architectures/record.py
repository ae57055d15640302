"""The record of an architecture: everything that its cores share."""

from collections.abc import Mapping
from dataclasses import dataclass

from tvm_serenity.errors import UnsupportedError


@dataclass(frozen=True, kw_only=True)
class Sections:
    """What a linker script says of an architecture's sections.

    ``entry``: the symbol of the first instruction. ``constants``, ``data`` and ``zeroed``: the
    patterns of sections with constants, with initial values and without. ``more``: further sections
    in flash, by name with their patterns. ``discarded``: patterns of sections that are omitted.
    """

    entry: str
    constants: str = "*(.rodata*)"
    data: str = "*(.data*)"
    zeroed: str = "*(.bss*) *(COMMON)"
    more: Mapping[str, str]
    discarded: str


@dataclass(frozen=True, kw_only=True)
class Emulator:
    """QEMU for an architecture.

    ``program``: its command, with ``options`` for every machine. ``machines``: maps each supported
    machine to the frequency in Hz of the clock that ``clock.h`` reads there, while an emulated
    instruction takes a fixed time.
    """

    program: str
    options: tuple[str, ...]
    machines: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class Toolchain:
    """The compiler, linker and emulator of an architecture.

    ``elf_machine``: the architecture's number in ELF files. ``prefix``: how the names of compiler
    and linker begin. ``packages``: maps each tool to its Debian packages. ``compiled`` and
    ``linked``: flags for every core, to compile and to link, and to link only.
    """

    elf_machine: int
    prefix: str
    packages: Mapping[str, str]
    compiled: str
    linked: str
    sections: Sections
    emulator: Emulator

    @property
    def compiler(self) -> str:
        """The C compiler."""
        return f"{self.prefix}gcc"


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """A family of cores.

    ``name``: also the folder of its files in ``firmware/project``. ``known_toolchain``: None if the
    user alone has a compiler. ``files``: its own files of a project, of which ``startup.c`` is
    compiled and the others are included.
    """

    name: str
    title: str
    known_toolchain: Toolchain | None
    files: tuple[str, ...]

    @property
    def toolchain(self) -> Toolchain:
        """The toolchain; raises :class:`UnsupportedError` if none is known."""
        if self.known_toolchain is None:
            raise UnsupportedError(
                f"{self.title}: no compiler and no emulator is known for it; run the project on "
                "the host (--host), and compile its sources with your compiler"
            )
        return self.known_toolchain

    @property
    def tools(self) -> tuple[str, ...]:
        """All programs that build and run firmware of the architecture."""
        return () if self.known_toolchain is None else tuple(self.known_toolchain.packages)
