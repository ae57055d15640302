"""What kernels of the library may use of a core."""

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
    neither, but this instruction set (0: kernels in C alone). ``name``: the core that has prices.
    """

    vectors: bool = False
    dsp: bool = False
    thumb: int = 0
    name: str = ""

    @staticmethod
    def of(core: Core) -> "Extensions":
        """Return what a board's core has."""
        return Extensions(core.mve, core.dsp and not core.mve, core.thumb, core.name)

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
