"""What kernels may use of a board's core.

The table behind it is ``targets/cores/*.toml``, a file for each core (``tvm_serenity.cores``).
"""

from dataclasses import dataclass
from enum import Enum

from tvm_serenity.boards import Core


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
        """The instruction set of the library kernels that the core runs."""
        if self.vectors:
            return Isa.MVE
        if self.dsp:
            return Isa.DSP
        return {0: Isa.C, 1: Isa.THUMB_1, 2: Isa.THUMB_2}[self.thumb]


PLAIN = Extensions()
"""Kernels in C alone, which have no prices."""
