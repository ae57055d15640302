"""RISC-V of 32 bits: I, M, A and C, as the unprivileged manual encodes them.

Capstone 5 does not tell the registers that a RISC-V instruction reads and writes, so the fields are
read here. Compressed instructions have the names of what they expand to.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tvm_serenity.cycles.families.record import (
    DIVIDES,
    LINK,
    NO_REGISTER,
    SIGNED,
    SP,
    STORES,
    CpuFamily,
    InstructionShape,
)

BRANCHES = {0: "beq", 1: "bne", 4: "blt", 5: "bge", 6: "bltu", 7: "bgeu"}
LOADS = {0: "lb", 1: "lh", 2: "lw", 4: "lbu", 5: "lhu"}
STORING = {0: "sb", 1: "sh", 2: "sw"}
IMMEDIATE = {0: "addi", 1: "slli", 2: "slti", 3: "sltiu", 4: "xori", 5: "srli", 6: "ori", 7: "andi"}
PLAIN = {0: "add", 1: "sll", 2: "slt", 3: "sltu", 4: "xor", 5: "srl", 6: "or", 7: "and"}
PRODUCTS = {0: "mul", 1: "mulh", 2: "mulhsu", 3: "mulhu", 4: "div", 5: "divu", 6: "rem", 7: "remu"}
ATOMIC = {0: "amoadd.w", 1: "amoswap.w", 2: "lr.w", 3: "sc.w", 4: "amoxor.w", 8: "amoor.w"} | {
    12: "amoand.w",
    16: "amomin.w",
    20: "amomax.w",
    24: "amominu.w",
    28: "amomaxu.w",
}
SYSTEM = {0: "ecall", 1: "ebreak", 0x102: "sret", 0x302: "mret", 0x105: "wfi"}
CSR = {1: "csrrw", 2: "csrrs", 3: "csrrc", 5: "csrrwi", 6: "csrrsi", 7: "csrrci"}
ARITHMETIC = {0: "sub", 1: "xor", 2: "or", 3: "and"}
WIDTHS = {"b": 1, "h": 2, "w": 4}

RA, STACK = 1, 2
NUMBERS = {RA: LINK, STACK: SP, 13: 2, 14: 1, 15: 0}
"""The numbers of the registers whose place those of every family take; x0 is never waited for."""

BREAKPOINT = 3
BEFORE, REQUEST = 0x01F01013, 0x00100073
"""A semihosting request is an ``ebreak`` between two shifts of x0."""


def _number(register: int) -> int:
    return NUMBERS.get(register, register)


def _mask(*registers: int) -> int:
    return sum(1 << _number(r) for r in {*registers} if r)


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


def _bits(word: int, *places: int) -> int:
    """Return the bits of ``word`` at ``places``, the first of which is the highest."""
    found = 0
    for place in places:
        found = found << 1 | word >> place & 1
    return found


def _computed(name: str, rd: int, *read: int) -> InstructionShape:
    return InstructionShape(names=(name,), written=_mask(rd), read=_mask(*read))


def _place(register: int) -> int:
    return _number(register) if register else NO_REGISTER


def _divided(name: str, rd: int, first: int, second: int) -> InstructionShape:
    return InstructionShape(
        names=(name,),
        base=_place(first),
        index=_place(second),
        written=_mask(rd),
        read=_mask(first, second),
        flags=DIVIDES | (0 if name.endswith("u") else SIGNED),
    )


def _loaded(name: str, rd: int, base: int, displacement: int) -> InstructionShape:
    return InstructionShape(
        names=(name,),
        base=_place(base),
        width=WIDTHS[name[1]],
        displacement=displacement,
        written=_mask(rd),
        address=_mask(base),
    )


def _stored(name: str, data: int, base: int, displacement: int) -> InstructionShape:
    loaded = _loaded(name, 0, base, displacement)
    return replace(loaded, read=_mask(data), flags=STORES)


def _shape(code: bytes, _address: int) -> InstructionShape | None:
    word = int.from_bytes(code, "little")
    return _wide(word) if len(code) == 4 else _compressed(word)


def _wide(word: int) -> InstructionShape | None:
    rd, kind, first, second = word >> 7 & 31, word >> 12 & 7, word >> 15 & 31, word >> 20 & 31
    top, upper = word >> 25, _signed(word >> 20, 12)
    opcode = word & 0x7F
    if opcode in (0x37, 0x17):
        return _computed("lui" if opcode == 0x37 else "auipc", rd)
    if opcode == 0x6F:
        return _computed("jal", rd)
    if opcode == 0x67 and kind == 0:
        return _computed("jalr", rd, first)
    if opcode == 0x63 and kind in BRANCHES:
        return _computed(BRANCHES[kind], 0, first, second)
    if opcode == 0x03 and kind in LOADS:
        return _loaded(LOADS[kind], rd, first, upper)
    if opcode == 0x23 and kind in STORING:
        return _stored(STORING[kind], second, first, _signed(top << 5 | rd, 12))
    if opcode == 0x13:
        shifts = {1: (0,), 5: (0, 0x20)}
        if top not in shifts.get(kind, (top,)):
            return None
        name = "srai" if kind == 5 and top else IMMEDIATE[kind]
        return _computed(name, rd, first)
    if opcode == 0x33:
        return _arithmetic(top, kind, rd, first, second)
    if opcode == 0x0F and kind < 2:
        return _computed("fence.i" if kind else "fence", 0)
    if opcode == 0x2F and kind == 2:
        return _atomic(top >> 2, rd, first, second)
    if opcode == 0x73:
        return _system(word, kind, rd, first)
    return None


def _arithmetic(top: int, kind: int, rd: int, first: int, second: int) -> InstructionShape | None:
    if top == 0:
        return _computed(PLAIN[kind], rd, first, second)
    if top == 0x20 and kind in (0, 5):
        return _computed("sra" if kind else "sub", rd, first, second)
    if top == 1:
        made = _divided if kind > 3 else _computed
        return made(PRODUCTS[kind], rd, first, second)
    return None


def _atomic(kind: int, rd: int, base: int, data: int) -> InstructionShape | None:
    if kind not in ATOMIC or (ATOMIC[kind] == "lr.w" and data):
        return None
    return InstructionShape(
        names=(ATOMIC[kind],),
        base=_place(base),
        width=4,
        written=_mask(rd),
        address=_mask(base),
        read=_mask(data),
        flags=0 if kind == 2 else STORES,
    )


def _system(word: int, kind: int, rd: int, first: int) -> InstructionShape | None:
    if kind in CSR:
        return _computed(CSR[kind], rd, first if kind < 4 else 0)
    name = SYSTEM.get(word >> 20)
    return None if kind or rd or first or name is None else _computed(name, 0)


def _compressed(word: int) -> InstructionShape | None:
    made = (_first_quadrant, _second_quadrant, _third_quadrant)[word & 3]
    return made(word, word >> 13)


def _first_quadrant(word: int, kind: int) -> InstructionShape | None:
    base, other = 8 + (word >> 7 & 7), 8 + (word >> 2 & 7)
    place = _bits(word, 5, 12, 11, 10, 6) << 2
    if kind == 0 and word >> 5 & 0xFF:
        return _computed("addi", other, STACK)
    if kind == 2:
        return _loaded("lw", other, base, place)
    return _stored("sw", other, base, place) if kind == 6 else None


def _second_quadrant(word: int, kind: int) -> InstructionShape | None:
    rd, short, other = word >> 7 & 31, 8 + (word >> 7 & 7), 8 + (word >> 2 & 7)
    immediate = _bits(word, 12, 6, 5, 4, 3, 2)
    if kind == 0:
        return _computed("addi", rd, rd)
    if kind in (1, 5):
        return _computed("jal", RA if kind == 1 else 0)
    if kind == 2:
        return _computed("addi", rd)
    if kind == 3:
        if not immediate:
            return None
        return _computed("addi", STACK, STACK) if rd == STACK else _computed("lui", rd)
    if kind > 5:
        return _computed("bne" if kind == 7 else "beq", 0, short)
    way = word >> 10 & 3
    if way < 3:
        if way < 2 and word >> 12 & 1:
            return None
        return _computed(("srli", "srai", "andi")[way], short, short)
    if word >> 12 & 1:
        return None
    return _computed(ARITHMETIC[word >> 5 & 3], short, short, other)


def _third_quadrant(word: int, kind: int) -> InstructionShape | None:
    rd, other = word >> 7 & 31, word >> 2 & 31
    if kind == 0:
        return None if word >> 12 & 1 else _computed("slli", rd, rd)
    if kind == 2 and rd:
        return _loaded("lw", rd, STACK, _bits(word, 3, 2, 12, 6, 5, 4) << 2)
    if kind == 6:
        return _stored("sw", other, STACK, _bits(word, 8, 7, 12, 11, 10, 9) << 2)
    if kind != 4:
        return None
    adds = word >> 12 & 1
    if other:
        return _computed("add", rd, rd, other) if adds else _computed("add", rd, other)
    if rd:
        return _computed("jalr", RA if adds else 0, rd)
    return _computed("ebreak", 0) if adds else None


def _unicorn(constant: str) -> Any:
    import unicorn
    from unicorn import riscv_const

    engine = unicorn.Uc(unicorn.UC_ARCH_RISCV, unicorn.UC_MODE_RISCV32)
    engine.ctl_set_cpu_model(getattr(riscv_const, constant))
    return engine


def _registers() -> list[int]:
    from unicorn import riscv_const as c

    made = [int(c.UC_RISCV_REG_PC)] * 32
    for register in range(1, 32):
        made[_number(register)] = int(getattr(c, f"UC_RISCV_REG_X{register}"))
    return made


def _request(number: int, pc: int, code_at: Callable[[int, int], bytes]) -> int | None:
    words = [int.from_bytes(code_at(pc + offset, 4), "little") for offset in (-4, 0)]
    return pc + 4 if number == BREAKPOINT and words == [BEFORE, REQUEST] else None


FAMILY = CpuFamily(
    name="riscv",
    models={"rv32": "UC_CPU_RISCV32_ANY"},
    parts=("unicorn",),
    unicorn=_unicorn,
    registers=_registers,
    result=10,
    instruction_set=0,
    vectors=False,
    size=lambda code: 4 if code[0] & 3 == 3 else 2,
    shape=_shape,
    request=_request,
)
