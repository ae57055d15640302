"""Decodes machine code to rows for the native driver, with a core's timing table."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tvm_serenity.cycles.core import KINDS, CoreTiming, Instruction
from tvm_serenity.cycles.families import InstructionShape, family_of
from tvm_serenity.cycles.families.record import ALONE, DIVIDES, ENTRY, LATE
from tvm_serenity.errors import UnsupportedError


@dataclass(frozen=True)
class Decoder:
    """Decodes the instruction at an address.

    ``entries`` are the addresses of operators. ``known`` holds the row of each instruction by its
    bytes, as at an address that is no entry: no field depends on the address.
    """

    core: CoreTiming
    code_at: Callable[[int, int], bytes]
    entries: frozenset[int]
    known: dict[bytes, list[int]] = field(default_factory=dict)

    def __call__(self, address: int) -> list[int]:
        """Return the row of the instruction at ``address``.

        The fields have the order of ``row_of`` in ``cpp/cycles/module.cpp``. Raises
        :class:`UnsupportedError` if the instruction is unknown or not in the timing table.
        """
        code = self.code_at(address, 4)
        code = code[: family_of(self.core.model).size(code)]
        row = self.known.get(code)
        if row is None:
            row = self.known[code] = self._decoded(code, address)
        return [*row[:-1], row[-1] | ENTRY] if address in self.entries else row

    def _decoded(self, code: bytes, address: int) -> list[int]:
        """Return the row of the instruction ``code``, which is at ``address``."""
        shape = family_of(self.core.model).shape(code, address)
        if shape is None:
            raise UnsupportedError(
                f"the instruction {code.hex()} at {address:#x} cannot be disassembled"
            )
        entry = next(
            (self.core.instructions[n] for n in shape.names if n in self.core.instructions), None
        )
        if entry is None:
            raise UnsupportedError(
                f"the timing table of {self.core.name} has no entry for {shape.names[-1]!r} "
                f"({code.hex()} at {address:#x})"
            )
        return _row(shape, entry, len(code))


def _row(shape: InstructionShape, entry: Instruction, size: int) -> list[int]:
    flags = shape.flags | (LATE if entry.late else 0) | (ALONE if entry.alone else 0)
    if entry.kind == "divide":
        flags |= DIVIDES
    return [
        KINDS.index(entry.kind),
        size,
        shape.count,
        entry.cycles,
        entry.most,
        entry.latency,
        shape.base,
        shape.index,
        shape.shift,
        shape.width,
        shape.displacement,
        shape.written,
        shape.address,
        shape.read,
        shape.float_written,
        shape.float_read,
        flags,
    ]
