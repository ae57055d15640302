"""The record of a family of emulated cores."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

NO_REGISTER = 255
SP, LINK, PC = 13, 14, 15
"""The numbers of the stack pointer, the return address and the program counter in every family.

Numbers of registers are below 32, and one has a bit of that number in a mask.
"""

STORES, WRITES_BACK, WRITES_PC, LATE, IS_FLOAT, ENTRY, ALONE, DIVIDES, SIGNED = (
    1,
    2,
    4,
    8,
    16,
    32,
    64,
    128,
    1,
)
"""The flags of a row, in the order of ``Flag`` in ``cpp/cycles/row.hpp``.

A signed division has the flag of a store.
"""


@dataclass(frozen=True, kw_only=True)
class InstructionShape:
    """A decoded instruction without its timing.

    ``names``: the names to look up in the timing table, the most specific first. ``base`` and
    ``index``: numbers of registers, of a division those of its operands. ``written``, ``address``
    and ``read``: masks of registers.
    """

    names: tuple[str, ...]
    count: int = 1
    base: int = NO_REGISTER
    index: int = NO_REGISTER
    shift: int = 0
    width: int = 0
    displacement: int = 0
    written: int = 0
    address: int = 0
    read: int = 0
    float_written: int = 0
    float_read: int = 0
    flags: int = 0


@dataclass(frozen=True, kw_only=True)
class CpuFamily:
    """Cores that one decoder and one emulator know.

    ``models``: maps the models that a core's file may name to Unicorn's constants. ``parts``: the
    Python packages that it needs. ``unicorn``: makes the emulator of a model. ``registers``:
    Unicorn's constants of registers, by their numbers. ``result``: the register of a function's
    result, and of a semihosting request. ``instruction_set``: 1 if addresses of code have the bit
    0 (Thumb). ``vectors``: whether the image begins with the initial stack pointer. ``size``: the
    bytes of an instruction, of its first four. ``shape``: the shape of an instruction at an
    address, None if it is unknown. ``request``: given an exception's number, the program counter
    and a function that reads code, the address after a semihosting request, None if it is none.
    """

    name: str
    models: Mapping[str, str]
    parts: tuple[str, ...]
    unicorn: Callable[[str], Any]
    registers: Callable[[], list[int]]
    result: int
    instruction_set: int
    vectors: bool
    size: Callable[[bytes], int]
    shape: Callable[[bytes, int], InstructionShape | None]
    request: Callable[[int, int, Callable[[int, int], bytes]], int | None]
