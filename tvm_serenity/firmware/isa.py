"""What kernels may use of a board's core, and whether the installed compilers know it.

The table behind it is ``targets/cores/*.toml``, a file for each core (``tvm_serenity.cores``).
"""

import functools
import subprocess
from dataclasses import dataclass
from enum import Enum

from tvm_serenity.boards import Board, Core
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.firmware.toolchain import cross_compiler, environment, have, identity


class Isa(Enum):
    """Instructions that kernels are written for."""

    C = "C alone"
    THUMB_1 = "Thumb-1"
    THUMB_2 = "Thumb-2"
    DSP = "the DSP extension"
    MVE = "vectors"


ANY = frozenset(Isa)
"""Kernels in C have forms for all instructions, chosen by the compiler's macros."""


@dataclass(frozen=True)
class Extensions:
    """What kernels may use of a core.

    ``vectors``: it has vector instructions; ``dsp``: those of the DSP extension alone; ``thumb``:
    neither, but this instruction set (0: kernels in C alone). ``name``: the core whose prices hold.
    """

    vectors: bool = False
    dsp: bool = False
    thumb: int = 0
    name: str = ""

    @staticmethod
    def of(core: Core) -> "Extensions":
        """Return what a board's core has."""
        vectors, dsp = core.has("mve"), core.has("dsp")
        thumb = 2 if core.has("thumb2") else int(core.has("thumb1"))
        return Extensions(vectors, dsp and not vectors, 0 if vectors or dsp else thumb, core.prices)

    @property
    def isa(self) -> Isa:
        """The instructions that its kernels are written for."""
        if self.vectors:
            return Isa.MVE
        if self.dsp:
            return Isa.DSP
        return {0: Isa.C, 1: Isa.THUMB_1, 2: Isa.THUMB_2}[self.thumb]


PLAIN = Extensions()
"""Kernels in C alone, which have no prices."""


def check_compiler(board: Board) -> None:
    """Raise :class:`UnsupportedError` where the installed C compiler does not know the core.

    It says what the compiler said. A compiler that is missing says nothing.
    """
    command = cross_compiler(board.compiler)
    if not have(command[0]):
        return
    said = _said(command, tuple(board.gcc.split()), identity(command[0]))
    if said:
        raise UnsupportedError(
            f"{command[0]} does not compile for {board.core.name}, the core of {board.name}: "
            f"{said}; install a version that knows this core, or write flags it knows into "
            "[toolchain] gcc of a board file of your own"
        )


@functools.cache
def _said(command: tuple[str, ...], flags: tuple[str, ...], _version: str) -> str:
    """The first complaint of a compiler about ``flags``, "" where it takes them."""
    done = subprocess.run(
        [*command, *flags, "-x", "c", "-fsyntax-only", "-"],
        input="typedef int nothing;\n",
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
    )
    if done.returncode == 0:
        return ""
    lines = [line for line in done.stderr.splitlines() if "error" in line] or ["failed"]
    return lines[0].partition("error: ")[2] or lines[0]
