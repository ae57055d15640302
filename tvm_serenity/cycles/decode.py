"""Decodes machine code to rows for the native driver, with Capstone and a core's timing table."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tvm_serenity.cycles.core import KINDS, CoreTiming, Instruction
from tvm_serenity.errors import UnsupportedError

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

NO_REGISTER = 255
SP, PC = 13, 15
NAMES = {f"r{i}": i for i in range(13)} | {
    "sb": 9,
    "sl": 10,
    "fp": 11,
    "ip": 12,
    "sp": 13,
    "lr": 14,
    "pc": 15,
}
FLOATS = {f"s{i}": 1 << i for i in range(32)} | {f"d{i}": 3 << 2 * i for i in range(16)}
LISTS = {"ldm", "ldmdb", "stm", "stmdb", "vldmia", "vldmdb", "vstmia", "vstmdb"}
"""Mnemonics of loads and stores whose first operand is the base register."""
STACK = {"push": 1, "pop": 0, "vpush": 1, "vpop": 0}
WIDE = (0b11101, 0b11110, 0b11111)
"""The first five bits of the second byte of an instruction of four bytes."""
WIDTHS = {"b": 1, "sb": 1, "h": 2, "sh": 2}


@dataclass(frozen=True)
class Decoder:
    """Decodes the instruction at an address.

    ``entries`` are the addresses of operators. ``known`` holds the row of each instruction by its
    bytes, as at an address that is no entry: no field depends on the address.
    """

    core: CoreTiming
    code_at: Callable[[int, int], bytes]
    entries: frozenset[int]
    engine: Any = field(default_factory=lambda: _engine())
    known: dict[bytes, list[int]] = field(default_factory=dict)

    def __call__(self, address: int) -> list[int]:
        """Return the row of the instruction at ``address``.

        The fields have the order of ``row_of`` in ``cpp/cycles/module.cpp``. Raises
        :class:`UnsupportedError` if the instruction is unknown or not in the timing table.
        """
        code = self.code_at(address, 4)
        code = code if code[1] >> 3 in WIDE else code[:2]
        row = self.known.get(code)
        if row is None:
            row = self.known[code] = self._decoded(code, address)
        return [*row[:-1], row[-1] | ENTRY] if address in self.entries else row

    def _decoded(self, code: bytes, address: int) -> list[int]:
        """Return the row of the instruction ``code``, which is at ``address``."""
        decoded = next(self.engine.disasm(code, address, 1), None)
        if decoded is None:
            raise UnsupportedError(
                f"the instruction {code.hex()} at {address:#x} cannot be disassembled"
            )
        shape = _shape(self.engine, decoded)
        entry = next(
            (self.core.instructions[n] for n in shape.names if n in self.core.instructions), None
        )
        if entry is None:
            raise UnsupportedError(
                f"the timing table of {self.core.name} has no entry for {shape.names[-1]!r} "
                f"({decoded.mnemonic} {decoded.op_str} at {address:#x})"
            )
        return _row(shape, entry, decoded.size, shape.flags)


@dataclass(frozen=True, kw_only=True)
class _Shape:
    """A decoded instruction without its timing.

    ``names``: the names to look up in the timing table, the most specific first.
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


def _row(shape: _Shape, entry: Instruction, size: int, flags: int) -> list[int]:
    flags |= (LATE if entry.late else 0) | (ALONE if entry.alone else 0)
    base, index = shape.base, shape.index
    if entry.kind == "divide":
        flags |= DIVIDES
    return [
        KINDS.index(entry.kind),
        size,
        shape.count,
        entry.cycles,
        entry.most,
        entry.latency,
        base,
        index,
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


def _engine() -> Any:
    import capstone

    mode = capstone.CS_MODE_THUMB | capstone.CS_MODE_MCLASS | capstone.CS_MODE_V8
    engine = capstone.Cs(capstone.CS_ARCH_ARM, mode)
    engine.detail = True
    return engine


@dataclass(frozen=True)
class _Operands:
    """The operands of one instruction as register numbers and masks."""

    engine: Any
    found: Any

    def core(self, register: int) -> int | None:
        return NAMES.get(self.engine.reg_name(register) or "")

    def float(self, register: int) -> int:
        return FLOATS.get(self.engine.reg_name(register) or "", 0)

    def registers(self) -> list[int]:
        return [o.reg for o in self.found.operands if o.type == 1]

    def memory(self) -> Any:
        return next((o for o in self.found.operands if o.type == 3), None)

    def mask(self, registers: Any) -> int:
        numbers = {self.core(r) for r in registers} - {None}
        return sum(1 << n for n in numbers if n is not None and n != PC)

    def writes_pc(self, name: str) -> bool:
        if name in ("pop", "ldm", "ldmdb"):
            return any(self.core(r) == PC for r in self.registers())
        if name in ("cmp", "cmn", "tst", "teq", "push") or name.startswith(("st", "b", "cb", "tb")):
            return False
        first = self.registers()[:1]
        return bool(first) and self.core(first[0]) == PC


def _shape(engine: Any, found: Any) -> _Shape:
    operands = _Operands(engine, found)
    name = str(engine.insn_name(found.id))
    if name == "movs":
        name = "mov"
    if name in STACK or name in LISTS:
        return _several(name, operands)
    if operands.memory() is not None and not name.startswith(("tbb", "tbh")):
        return _memory(name, operands)
    return _plain(name, operands)


def _plain(name: str, operands: _Operands) -> _Shape:
    registers = operands.registers()
    core = [n for n in map(operands.core, registers) if n is not None]
    floats = [f for f in map(operands.float, registers) if f]
    pc = operands.writes_pc(name)
    names = [name]
    if pc:
        names.insert(0, f"{name}+pc")
    if len(core) == 2 and name == "vmov":
        names.insert(0, "vmov+pair")
    if ".f64" in operands.found.mnemonic:
        names.insert(0, f"{name}+f64")
    _, written = operands.found.regs_access()
    tests = name in ("cmp", "cmn", "tst", "teq", "vcmp", "vcmpe")
    made = 0 if tests else operands.mask(written)
    keeps = tests or name.startswith(("vmla", "vmls", "vfma", "vfms", "vnml", "vfnm"))
    float_read = 0
    for value in floats if keeps else floats[1:]:
        float_read |= value
    # A vmov between core and float registers reads or writes a float register.
    if name == "vmov" and core:
        to_core = bool(made)
        float_all = sum(set(floats))
        return _Shape(
            names=tuple(names),
            written=made,
            read=0 if to_core else operands.mask(registers),
            float_written=0 if to_core else float_all,
            float_read=float_all if to_core else 0,
            flags=IS_FLOAT,
        )
    divides = name in ("sdiv", "udiv")
    return _Shape(
        names=tuple(names),
        written=made,
        read=operands.mask(registers if tests else registers[1:] or registers),
        float_written=floats[0] if floats and not tests else 0,
        float_read=float_read,
        base=core[-2] if divides else NO_REGISTER,
        index=core[-1] if divides else NO_REGISTER,
        flags=(WRITES_PC if pc else 0)
        | (IS_FLOAT if name.startswith("v") else 0)
        | (SIGNED if name == "sdiv" else 0),
    )


def _memory(name: str, operands: _Operands) -> _Shape:
    instruction, memory = operands.found, operands.memory()
    base, index = operands.core(memory.mem.base), operands.core(memory.mem.index)
    registers = operands.registers()
    data = registers[1:] if name.startswith("strex") else registers
    stores = name.startswith(("st", "vst"))
    pc = operands.writes_pc(name) and not stores
    is_float = name.startswith("v")
    double = name in ("ldrd", "strd")
    core_data = [] if is_float else data[:2] if double else data[:1]
    float_data = operands.float(data[0]) if is_float and data else 0
    after = (
        "], " in instruction.op_str
    )  # Post-indexed: the base register is updated after the access.
    names = [name]
    if index is not None:
        names.insert(0, f"{name}+index")
    if pc:
        names.insert(0, f"{name}+pc")
    width = 4
    if not is_float and not double:
        width = WIDTHS.get(name.removesuffix("t")[3:] if name not in ("ldrt", "strt") else "", 4)
    if name in ("ldrexb", "strexb", "ldab", "stlb"):
        width = 1
    if name in ("ldrexh", "strexh", "ldah", "stlh"):
        width = 2
    address = 0
    for number in (base, index):
        if number is not None and number != PC:
            address |= 1 << number
    return _Shape(
        names=tuple(names),
        count=2 if double or bin(float_data).count("1") == 2 else 1,
        base=PC if base is None else base,
        index=NO_REGISTER if index is None else index,
        shift=memory.shift.value & 31 if memory.shift.type else 0,
        width=0 if name.startswith("pl") else width,
        displacement=0 if after else int(memory.mem.disp),
        written=0 if stores else operands.mask(core_data),
        address=address,
        read=operands.mask(core_data) if stores else 0,
        float_written=0 if stores else float_data,
        float_read=float_data if stores else 0,
        flags=(STORES if stores else 0)
        | (WRITES_BACK if instruction.writeback else 0)
        | (WRITES_PC if pc else 0)
        | (IS_FLOAT if is_float else 0),
    )


def _several(name: str, operands: _Operands) -> _Shape:
    registers = operands.registers()
    base = SP
    if name in LISTS:
        base, registers = operands.core(registers[0]) or 0, registers[1:]
    is_float = name.startswith("v")
    floats = sum({operands.float(r) for r in registers})
    count = bin(floats).count("1") if is_float else len(registers)
    stores = bool(STACK.get(name, "st" in name))
    downward = stores if name in STACK else name.endswith("db")
    pc = operands.writes_pc(name)
    core = 0 if is_float else operands.mask(registers)
    back = name in STACK or bool(operands.found.writeback)
    return _Shape(
        names=(f"{name}+pc", name) if pc else (name,),
        count=count,
        base=base,
        width=4,
        displacement=-4 * count if downward else 0,
        written=0 if stores else core,
        address=1 << base,
        read=core if stores else 0,
        float_written=0 if stores else floats,
        float_read=floats if stores else 0,
        flags=(STORES if stores else 0)
        | (WRITES_BACK if back else 0)
        | (WRITES_PC if pc else 0)
        | (IS_FLOAT if is_float else 0),
    )
