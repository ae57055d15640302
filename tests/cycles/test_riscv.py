"""RISC-V: the decoder beside binutils', and loops on the cores whose tables are documented."""

import random
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cases import scaled
from tests.cycles.programs import assemble_riscv, riscv_board, riscv_loop
from tests.firmware.projects import HELLO, model, needs_riscv
from tvm_serenity import firmware
from tvm_serenity.boards import board
from tvm_serenity.cores import core_model
from tvm_serenity.cycles import MeasuredCall, cycles_of, estimate
from tvm_serenity.cycles.core import CoreTiming, Instruction, core_timing
from tvm_serenity.cycles.families import InstructionShape, family_of
from tvm_serenity.cycles.families import riscv as family
from tvm_serenity.cycles.families.record import LINK, SP, STORES
from tvm_serenity.firmware.board.latency import latency
from tvm_serenity.firmware.check.verify import run_qemu
from tvm_serenity.firmware.settings import Settings

pytest.importorskip("tvm")
pytest.importorskip("unicorn")
pytest.importorskip("tvm_serenity._cycles")
pytestmark = needs_riscv

MEMORY = re.compile(r"(-?\d+)\((x\d+)\)|\((x\d+)\)")
EXPANDED = {
    **dict.fromkeys(("c.addi4spn", "c.addi16sp", "c.li", "c.nop"), "addi"),
    "c.lwsp": "lw",
    "c.swsp": "sw",
    "c.mv": "add",
    "c.j": "jal",
    "c.jr": "jalr",
    "c.beqz": "beq",
    "c.bnez": "bne",
    "c.slli64": "slli",
    "c.srli64": "srli",
    "c.srai64": "srai",  # by 0: a hint
}
NOT_OF_32_BITS = re.compile(r"s[lr][la]i .*0x[23][0-9a-f]$|addi16sp x2,0$")
"""A shift by 32 or more and a reserved addition, which binutils reads in raw bytes."""
TWO = {"add", "addi", "sub", "xor", "or", "and", "andi", "slli", "srli", "srai"}
"""Compressed instructions whose result replaces their first operand."""


def _number(register: int) -> int:
    return {1: LINK, 2: SP, 13: 2, 14: 1, 15: 0}.get(register, register)


def _bits(registers: set[int]) -> int:
    return sum(1 << _number(r) for r in registers - {0})


def _listed(code: bytes, folder: Path) -> dict[int, tuple[str, str]]:
    """Name and operands of each instruction by its address, as binutils has them."""
    (folder / "code.bin").write_bytes(code)
    words = ["riscv64-unknown-elf-objdump", "-D", "-b", "binary", "-m", "riscv:rv32"]
    words += ["-M", "no-aliases,numeric", str(folder / "code.bin")]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    lines = re.findall(r"^ +([0-9a-f]+):\t[0-9a-f]+ +\t(\S+)(?:\t([^#\n]*))?", said, re.M)
    return {int(at, 16): (name, operands.strip()) for at, name, operands in lines}


def _expected(name: str, operands: str) -> tuple[str, int, int, int, int | None, int]:
    """Name, registers written, of the address and read, displacement and flag of a store."""
    short = name.startswith("c.")
    base = EXPANDED.get(name, name.removeprefix("c."))
    base = re.sub(r"\.(aq|rl|aqrl)$", "", base)
    registers = [int(r) for r in re.findall(r"\bx(\d+)\b", operands)]
    found = MEMORY.search(operands)
    if base in ("lb", "lh", "lw", "lbu", "lhu", "sb", "sh", "sw") or base.endswith(".w"):
        assert found is not None
        place = int((found[2] or found[3])[1:])
        data = registers[:-1]
        displacement = int(found[1] or 0)
        if base.startswith(("sb", "sh", "sw")):
            return base, 0, _bits({place}), _bits({*data}), displacement, STORES
        store = 0 if base.startswith("l") else STORES
        return base, _bits({*data[:1]}), _bits({place}), _bits({*data[1:]}), displacement, store
    if base in family.BRANCHES.values():
        return base, 0, 0, _bits({*registers}), None, 0
    if short and base in ("jal", "jalr"):
        link = {1} if name in ("c.jal", "c.jalr") else set()
        return base, _bits(link), 0, _bits({*registers}), None, 0
    written, read = {*registers[:1]}, {*registers[1:]}
    if short and base in TWO and name not in ("c.mv", "c.li", "c.nop", "c.addi4spn"):
        read |= written
    return base, _bits(written), 0, _bits(read), None, 0


def _words(count: int) -> list[int]:
    """Words whose opcodes are those of I, M and A, with every other bit at random."""
    draw = random.Random(7)
    opcodes = (0x37, 0x17, 0x6F, 0x67, 0x63, 0x03, 0x23, 0x13, 0x33, 0x2F, 0x73)
    made = []
    for i in range(count):
        word = draw.getrandbits(25) << 7 | opcodes[i % len(opcodes)]
        if i % len(opcodes) > 6 and draw.random() < 0.8:  # most have a rare upper field
            top = draw.choice((0, 1, 0x20)) if word & 4 == 0 else draw.choice(range(0, 128, 4))
            word = word & (1 << 25) - 1 | top << 25
        made.append(word)
    return made


def _differences(words: list[bytes], folder: Path) -> tuple[dict[str, object], int]:
    """Instructions that the decoder reads otherwise than binutils, and the number compared."""
    listed = _listed(b"".join(words), folder)
    wrong: dict[str, object] = {}
    at = compared = 0
    for code in words:
        name, operands = listed[at]
        at += len(code)
        shape = family_of("rv32").shape(code, 0)
        if name.startswith((".", "c.unimp")) or name.lstrip("c.")[:1] == "f":
            if shape is not None and name[:1] == ".":
                wrong[code.hex()] = (name, shape)
            continue
        if shape is None:
            if NOT_OF_32_BITS.search(f"{name} {operands}") is None:
                wrong[code.hex()] = (name, operands)
            continue
        compared += 1
        if _told(shape) != _expected(name, operands):
            wrong[code.hex()] = (name, operands, _told(shape), _expected(name, operands))
    return wrong, compared


def _told(shape: InstructionShape) -> tuple[str, int, int, int, int | None, int]:
    place = shape.displacement if shape.width else None
    store = shape.flags & STORES if shape.width else 0
    return shape.names[0], shape.written, shape.address, shape.read, place, store


def test_all_compressed_instructions_are_read_as_binutils_does(tmp_path: Path) -> None:
    halves = [i.to_bytes(2, "little") for i in range(1 << 16) if i & 3 != 3]
    wrong, compared = _differences(halves, tmp_path)
    assert not wrong
    assert compared > 28_000


def test_words_are_read_as_binutils_does(tmp_path: Path) -> None:
    words = [w.to_bytes(4, "little") for w in _words(scaled(20_000, 200_000))]
    wrong, compared = _differences(words, tmp_path)
    assert not wrong
    assert compared > 10_000


FAULTS: dict[str, Any] = {
    "_signed": lambda value, bits: value & (1 << bits) - 1,
    "_bits": lambda word, *places: sum(1 << i for i, p in enumerate(places) if word >> p & 1),
    "_mask": lambda *registers: sum(1 << r for r in {*registers}),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_the_decoder_is_seen(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Signs, the order of scattered bits, and the numbers of registers."""
    monkeypatch.setattr(family, name, FAULTS[name])
    words = [w.to_bytes(4, "little") for w in _words(200)]
    halves = [(i << 5 | 0x4002).to_bytes(2, "little") for i in range(64)]
    assert _differences(words + halves, tmp_path)[0]


# Cycles of a body, without the loop's own addi and bnez, as the manual tells them.
HAZARD3 = {
    "nop": 1,
    "add a4, a4, a5; xor a4, a4, a5; lui a7, 4": 3,
    "mul a4, a3, a5; add a4, a4, a4; mulhu a4, a3, a5": 3,
    "divu a4, a6, a5": 18,
    "rem a4, a6, a5": 19,
    "lw a4, 0(a1)": 1,
    "lw a4, 0(a1); add a4, a4, a5": 3,
    "lbu a4, 0(a1); nop; add a4, a4, a5": 3,
    "sw a2, 0(a1); lw a4, 0(a1); lw a4, 0(a4)": 4,
    "lw a4, 0(a1); sw a4, 0(a2)": 2,
    "lr.w a4, (a1); sc.w a4, a5, (a1)": 2,
    "amoadd.w a4, a5, (a1)": 4,
    "j 2f; nop; 2: nop": 3,
    "beq a5, x0, 2f; 2: nop": 2,
    "bne a5, x0, 2f; nop; 2: nop": 3,
    "csrr a4, mscratch": 1,
    "fence": 1,
}
FOUR_STAGES = {
    "nop": 1,
    "mul a4, a3, a5; add a4, a4, a4": 2,
    "mulh a4, a3, a5": 5,
    "divu a4, a5, a6": 3,
    "divu a4, a6, a5": 35,
    "lh a4, 0(a1); add a4, a4, a5": 3,
    "sh a4, 0(a1)": 1,
    "j 2f; nop; 2: nop": 3,
    "beq a5, x0, 2f; 2: nop": 2,
    "bne a5, x0, 2f; nop; 2: nop": 4,
}
BUMBLEBEE = {
    "nop": 1,
    "mul a4, a3, a5; add a4, a4, a4": 2,
    "div a4, a6, a5": 17,
    "lb a4, 0(a1); add a4, a4, a5": 3,
    "sb a4, 0(a1)": 1,
    "amoswap.w a4, a5, (a1)": 4,
    "jal x0, 2f; nop; 2: nop": 3,
}
BODIES = {"hazard3": (HAZARD3, 2), "esp-rv32imc": (FOUR_STAGES, 4), "bumblebee": (BUMBLEBEE, 2)}
"""The bodies of each core, and the cycles of the loop's own instructions."""


def _wrong(core: str, folder: Path) -> dict[str, tuple[int, float]]:
    """The bodies of ``core`` that do not take what they must, with what they must and do."""
    bodies, own = BODIES[core]
    functions = {}
    for i, body in enumerate(bodies):
        functions[f"few{i}"], functions[f"many{i}"] = riscv_loop(body, 100), riscv_loop(body, 200)
    elf, on = assemble_riscv(folder, functions), riscv_board(folder, core)
    wrong = {}
    for i, (body, cycles) in enumerate(bodies.items()):
        few, many = (
            cycles_of(elf, on, MeasuredCall(function=f"{n}{i}", entry=f"{n}{i}")).cycles[0]
            for n in ("few", "many")
        )
        if (many - few) / 100 != cycles + own:
            wrong[body] = (cycles, (many - few) / 100 - own)
    return wrong


@pytest.mark.parametrize("core", BODIES)
def test_every_loop_takes_what_the_table_says(core: str, tmp_path: Path) -> None:
    assert not _wrong(core, tmp_path)


def _dearer(core: CoreTiming, group: Instruction) -> CoreTiming:
    """The table with one cycle more for a group."""
    longer = replace(group, cycles=group.cycles + 1, most=group.most + 1)
    dearer = replace(longer, latency=group.latency + 1)
    changed = {n: dearer if i == group else i for n, i in core.instructions.items()}
    return replace(core, instructions=changed)


@pytest.mark.parametrize("name", ["addi", "mulhu", "divu", "rem", "lw", "sw", "beq", "jal"])
def test_a_wrong_entry_of_the_table_is_seen(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = core_timing("hazard3")
    changed = _dearer(table, table.instructions[name])
    monkeypatch.setattr(estimate, "core_timing", lambda *_: changed)
    assert _wrong("hazard3", tmp_path)


@pytest.mark.parametrize("core", BODIES)
def test_a_table_has_every_instruction_of_its_core(core: str) -> None:
    """What the decoder knows; atomics only where the core has them."""
    names = {"lui", "auipc", "jal", "jalr", "fence", "fence.i", "sub", "sra", "srai"}
    for some in (family.BRANCHES, family.LOADS, family.STORING, family.IMMEDIATE, family.PLAIN):
        names |= {*some.values()}
    names |= {*family.PRODUCTS.values(), *family.CSR.values()}
    if "imac" in core_model(core).variants[0].gcc:
        names |= {*family.ATOMIC.values()}
    assert names <= {*core_timing(core).instructions}


def test_instructions_are_those_of_qemu(tmp_path: Path) -> None:
    """Of a network's program: with start-up, semihosting and compressed instructions."""
    target = board("rv32imc:64K:256K")
    settings = Settings(name="net", output=tmp_path / "made", check=False)
    made = firmware.build(model(HELLO), target, settings)
    memories = [
        {"region": r.name, "wait_states": [[10_000, 0]], "source": "the test"}
        for r in target.regions
        if r.kind == "flash"
    ]
    about = {"class": "modelled", "error_percent": 20, "source": "the test"}
    timing = {**about, "core": "hazard3", "memories": memories}
    found = latency(made, replace(target, timing=timing))
    counted = run_qemu(made, made.reference_inputs(), traced=False).instructions
    assert counted is not None
    assert abs(found.instructions - counted) <= 32
    assert 1.0 <= found.cycles[0] / found.instructions < 1.6
