"""Estimates cycles from counts of executed blocks and a core's table, without Unicorn.

Each instruction takes its cycles in the table; a load after an independent load takes one cycle
less; a taken branch adds its refill. The estimate has no wait states and no latencies, because the
contents of registers are unknown. So it is less accurate than ``cycles_of``.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tvm_serenity.cycles.core import CoreTiming, Instruction
from tvm_serenity.errors import UnsupportedError

STATIC = "static"
"""The class of these estimates: instruction counts and the core's table, without memories."""

CONDITIONS = re.findall("..", "eqnecshscclomiplvsvchilsgeltgtleal")
SAME = {"ldmia": "ldm", "ldmfd": "ldm", "stmia": "stm", "stmea": "stm", "neg": "rsb"}
LOADS = ("load", "float_load")
FOLLOW = (*LOADS, "store_indexed", "float_store")
"""Kinds of instructions before which a load takes its full cycles (``cpp/cycles/pipeline.cpp``)."""


@dataclass(frozen=True, slots=True)
class BlockLine:
    """One disassembled instruction of a block."""

    address: int
    size_bytes: int
    mnemonic: str
    operands: str


@dataclass(frozen=True)
class BlockCounts:
    """The executed blocks.

    ``lines``: maps the address of a block to its instructions. ``pairs``: maps the address of a
    block and the address that ran next to the number of times this happened.
    """

    lines: Mapping[int, tuple[BlockLine, ...]]
    pairs: Mapping[tuple[int, int], int]

    @property
    def instructions(self) -> int:
        """The number of executed instructions."""
        return sum(len(self.lines[block]) * n for (block, _), n in self.pairs.items())


def static_cycles(counts: BlockCounts, core: CoreTiming) -> tuple[int, int]:
    """Return the range of cycles, for the least and the largest cost of branches and divisions.

    Conditional instructions are part of the range too. Raises :class:`UnsupportedError` if the
    table has no entry for an instruction, or if the core waits for results, because the counts do
    not say for which.
    """
    if not core.pipeline.adds_costs:
        raise UnsupportedError(
            f"{core.name} waits for results; a static estimate is not possible, because counts of "
            "blocks do not say for which"
        )
    low = high = 0
    blocks = {block: _block(lines, core) for block, lines in counts.lines.items()}
    for (block, following), times in counts.pairs.items():
        least, most = blocks[block]
        last = counts.lines[block][-1]
        if following != last.address + last.size_bytes:
            direct = _named(last.mnemonic)[0] in ("b", "bl", "cbz", "cbnz")
            refill = core.pipeline.refill if direct else core.pipeline.refill_indirect
            least, most = least + refill[0], most + refill[1]
        low, high = low + times * least, high + times * most
    return low, high


def _block(lines: Iterable[BlockLine], core: CoreTiming) -> tuple[int, int]:
    low = high = 0
    loaded = ""
    for line in lines:
        entry, conditional = _entry(line, core)
        more = _registers(line) - 1
        transfers = -(-max(more, 0) // core.pipeline.transfers_per_cycle)
        cycles = entry.cycles + transfers
        address = set(re.findall(r"\w+", line.operands.partition("[")[2]))
        if entry.kind in FOLLOW and loaded and loaded not in address and entry.cycles > 1:
            cycles -= core.pipeline.load_overlap_cycles
        low += 1 if conditional else cycles
        high += cycles + entry.most - entry.cycles
        single = entry.kind in LOADS and more < 1
        loaded = line.operands.split(",")[0].strip() if single else ""
    return low, high


def _entry(line: BlockLine, core: CoreTiming) -> tuple[Instruction, bool]:
    name, conditional = _named(line.mnemonic, core.instructions)
    operands = line.operands
    for form, here in (
        ("+pc", re.search(r"^pc\b|\{.*\bpc\}", operands)),
        ("+index", re.search(r"\[\w+, [a-z]", operands)),
        ("+pair", name == "vmov" and operands.count(",") > 1),
        ("+f64", re.search(r"\bd\d", operands)),
        ("", True),
    ):
        if here and name + form in core.instructions:
            return core.instructions[name + form], conditional
    raise UnsupportedError(
        f"the timing table of {core.name} has no entry for {line.mnemonic!r} "
        f"({operands} at {line.address:#x})"
    )


def _named(mnemonic: str, known: Iterable[str] = ()) -> tuple[str, bool]:
    """Return the table's name for a mnemonic, and whether it is conditional (not for branches)."""
    name = mnemonic.partition(".")[0]
    name = SAME.get(name, name)
    if name[:2] == "it":
        return "it", False
    if name in known or name in ("b", "bl", "cbz", "cbnz"):
        return name, False
    if name[0] == "b" and name[1:] in CONDITIONS:
        return "b", False
    stem = name[:-2] if name[-2:] in CONDITIONS else name
    for short in (stem, stem.removesuffix("s")):
        short = SAME.get(short, short)
        if short in known:
            return short, stem != name
    return SAME.get(name.removesuffix("s"), name.removesuffix("s")), False


def _registers(line: BlockLine) -> int:
    """Return the number of words that a load or store moves: more than 1 for lists and pairs."""
    inside = re.search(r"\{(.*)\}", line.operands)
    if inside is None:
        pair = line.mnemonic[:4] in ("ldrd", "strd")
        double = line.mnemonic[:4] in ("vldr", "vstr") and line.operands.startswith("d")
        return 2 if pair or double else 1
    count = 0
    for part in inside[1].split(","):
        ends = [int(n) for n in re.findall(r"\d+", part)]
        span = ends[1] - ends[0] + 1 if "-" in part and len(ends) > 1 else 1
        count += span * (2 if part.strip().startswith("d") else 1)
    return count
