"""Arm Cortex-M: instructions by Capstone."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from tvm_serenity.cycles.families.record import (
    IS_FLOAT,
    NO_REGISTER,
    PC,
    SIGNED,
    SP,
    STORES,
    WRITES_BACK,
    WRITES_PC,
    CpuFamily,
    InstructionShape,
)

SYSTEM, SYSTEM_BYTES = 0xE000E000, 4096
"""The system control space, whose registers are emulated as memory."""
FAULT_BITS = 0xF << 20
BREAKPOINT = 7
SEMIHOSTING = b"\xab\xbe"

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


def _shape(engine: Any, found: Any) -> InstructionShape:
    operands = _Operands(engine, found)
    name = str(engine.insn_name(found.id))
    if name == "movs":
        name = "mov"
    if name in STACK or name in LISTS:
        return _several(name, operands)
    if operands.memory() is not None and not name.startswith(("tbb", "tbh")):
        return _memory(name, operands)
    return _plain(name, operands)


def _plain(name: str, operands: _Operands) -> InstructionShape:
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
        return InstructionShape(
            names=tuple(names),
            written=made,
            read=0 if to_core else operands.mask(registers),
            float_written=0 if to_core else float_all,
            float_read=float_all if to_core else 0,
            flags=IS_FLOAT,
        )
    divides = name in ("sdiv", "udiv")
    return InstructionShape(
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


def _memory(name: str, operands: _Operands) -> InstructionShape:
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
    return InstructionShape(
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


def _several(name: str, operands: _Operands) -> InstructionShape:
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
    return InstructionShape(
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


@cache
def _engine() -> Any:
    import capstone

    mode = capstone.CS_MODE_THUMB | capstone.CS_MODE_MCLASS | capstone.CS_MODE_V8
    engine = capstone.Cs(capstone.CS_ARCH_ARM, mode)
    engine.detail = True
    return engine


def _disassembled(code: bytes, address: int) -> InstructionShape | None:
    decoded = next(_engine().disasm(code, address, 1), None)
    return None if decoded is None else _shape(_engine(), decoded)


def _unicorn(constant: str) -> Any:
    import unicorn
    from unicorn import arm_const

    engine = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB | unicorn.UC_MODE_MCLASS)
    engine.ctl_set_cpu_model(getattr(arm_const, constant))
    engine.mem_map(SYSTEM, SYSTEM_BYTES)
    engine.mem_write(0xE000ED88, FAULT_BITS.to_bytes(4, "little"))
    return engine


def _registers() -> list[int]:
    from unicorn import arm_const as c

    first = [getattr(c, f"UC_ARM_REG_R{i}") for i in range(13)]
    return [*first, c.UC_ARM_REG_SP, c.UC_ARM_REG_LR, c.UC_ARM_REG_PC]


def _request(number: int, pc: int, code_at: Callable[[int, int], bytes]) -> int | None:
    return pc + 2 if number == BREAKPOINT and code_at(pc, 2) == SEMIHOSTING else None


FAMILY = CpuFamily(
    name="arm",
    models={f"m{n}": f"UC_CPU_ARM_CORTEX_M{n}" for n in (0, 3, 4, 7, 33)},
    parts=("unicorn", "capstone"),
    unicorn=_unicorn,
    registers=_registers,
    result=0,
    instruction_set=1,
    vectors=True,
    size=lambda code: 4 if code[1] >> 3 in WIDE else 2,
    shape=_disassembled,
    request=_request,
)
