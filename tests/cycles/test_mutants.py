"""The C++ that prices: sequences take what was counted by hand, and no mutant of it does."""

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import tvm_serenity
from tvm_serenity.firmware.board.toolchain import have

SOURCES = Path(tvm_serenity.__file__).parent / "cpp"
pytestmark = [
    pytest.mark.skipif(not have("g++"), reason="g++ is not installed"),
    pytest.mark.skipif(not SOURCES.is_dir(), reason="the C++ sources are not here"),
]

FIRST = 1
"""A cycle until the first instruction is there."""
CYCLES = {
    # Cortex-M4, by the manual: loads 2 and a neighbour 1, lists 1 + N, IT folded
    "loads": FIRST + 2 + 1,
    "chained-loads": FIRST + 2 + 2,
    "loads-apart": FIRST + 2 + 1 + 2,
    "half-aligned": FIRST + 2 + 1,
    "byte-aligned": FIRST + 2 + 2,
    "address-just-made": FIRST + 1 + 1 + 2,
    "list": FIRST + 1 + 4,
    "divide": FIRST + 7,
    "float-just-made": FIRST + 1 + 1 + 1,
    "it-folded": FIRST + 1 + 0 + 1,
    "branches": FIRST + 10 + 9 * 1,
    "indirect": FIRST + 10 + 9 * 2,
    # a load and an instruction behind it are 3; what is not held waits 4
    "waits": FIRST + 4 * 3 + 4 * 4,
    "buffered": FIRST + 4 * 3 + 1 * 4,
    "hits": FIRST + 4 * 3 + 2 * 4,
    "oldest-leaves": FIRST + 6 * 3 + 4 * 4,
    "sectors": FIRST + 8 * 3 + 4 * 4,
    "line-filled": FIRST + 6 * 3 + 2 * 4,
    # three of four misses meet the end of the fill before: 4 words, a cycle more
    "sets": FIRST + 5 * 3 + 4 * 4 + 3,
    "one-port": FIRST + 3 + 4 + 5,
    # Cortex-M7: two a cycle where they may, 4 cycles for a branch that was guessed wrong
    "pairs": FIRST + 10,
    "dependent": FIRST + 20,
    "products": FIRST + 20,
    "product-chain": FIRST + 20 * 2 - 1,
    "two-loads": FIRST + 10,
    "stores": FIRST + 20,
    "guessed": FIRST + 20 + 4,
    "guessed-wrong": FIRST + 20 + 10 * 4 + 10 + 9 * 4,
    # Hazard3, by its manual: a result of a load a cycle later, except for a store of it
    "load-use": FIRST + 3,
    "load-apart": FIRST + 3,
    "load-address": FIRST + 3,
    "load-stored": FIRST + 2,
    "one-a-cycle": FIRST + 3,
    "jumps": FIRST + 10 * 2 - 1,
    # a cycle more for the first branch back and for the last, which is not taken
    "loop-left": FIRST + 20 * 2 + 2 + 1,
    "loop-again": FIRST + 2 * (3 * 2 + 2 + 2) + 1,
    "forward": FIRST + 3 * (2 + 2) + 1,
    "unaligned-target": FIRST + 2 + 1 + 1,
}

MUTANTS = {
    "loads never overlap": ("pipeline.cpp", "cost -= std::min<u64>(cost - 1, core_.load_overlap);"),
    "divisions take the least": ("pipeline.cpp", "cost = divided;"),
    "no address is late": ("pipeline.cpp", "hazard += core_.address_hazard;"),
    "refills swapped": (
        "pipeline.cpp",
        "row.kind == kBranch ? refill_.direct : refill_.indirect);",
        "row.kind == kBranch ? refill_.indirect : refill_.direct);",
    ),
    "a refill is longer": (
        "pipeline.hpp",
        "fetch_free_ = now + refill - (refill > 0);",
        "fetch_free_ = now + refill;",
    ),
    "one more of a kind a cycle": (
        "pipeline.cpp",
        "used_[row.kind] < limit",
        "used_[row.kind] <= limit",
    ),
    "branches are never guessed": ("pipeline.cpp", "return guessed != taken;", "return taken;"),
    "the last backward branch is kept": (
        "pipeline.cpp",
        "if (guessed && !taken) predicted_ = 0;",
    ),
    "branches forward are predicted": ("pipeline.cpp", "if (taken && next < pc)", "if (taken)"),
    "stores wait for their data": ("pipeline.cpp", "later = row.is(kStores)", "later = 0"),
    "two a cycle": ("pipeline.cpp", "(core_.width == 1 && issued_)", "0"),
    "16 registers": ("pipeline.cpp", "kRegisters = ~(1u << kPc)", "kRegisters = 0x7fff"),
    "registers above r3 are ready": ("pipeline.cpp", "kRegisters = ~(1u << kPc)", "kRegisters = 0"),
    "the newest line leaves": (
        "memory.hpp",
        "line->used < oldest->used",
        "line->used > oldest->used",
    ),
    "lines are sectors": (
        "memory.hpp",
        "tag = address / line_bytes",
        "tag = address / sector_bytes",
    ),
    "one set": ("memory.hpp", "tag % sets", "tag % 1"),
    "the last line is any": ("memory.hpp", "line.valid && line.tag == tag", "line.valid"),
    "a wait too many": (
        "memory.hpp",
        "read(memory, cache, start) - start - 1;",
        "read(memory, cache, start) - start;",
    ),
    "ports are free": ("memory.hpp", "start = std::max(start, port_free[memory.port]);"),
}


COMPILER = ("g++", "-std=c++17", "-O0")
LIBRARY = "library.h"
"""Compiled once: it is most of what each mutant would take."""


def _library(folder: Path) -> None:
    names = ("algorithm", "array", "cstdint", "cstdio", "vector")
    (folder / LIBRARY).write_text("".join(f"#include <{name}>\n" for name in names))
    subprocess.run([*COMPILER, "-x", "c++-header", folder / LIBRARY], check=True)


def _priced(folder: Path) -> str:
    program = folder / "pricing"
    harness = Path(__file__).parent / "pricing.cpp"
    command = [*COMPILER, f"-I{folder}", "-include", str(folder.parent / LIBRARY), str(harness)]
    command += ["-o", str(program)]
    subprocess.run(command, check=True, capture_output=True)
    return subprocess.run([program], check=True, capture_output=True, text=True, timeout=60).stdout


def _mutant(folder: Path, change: tuple[str, ...]) -> str:
    shutil.copytree(SOURCES / "cycles", folder / "cycles")
    if change:
        path = folder / "cycles" / change[0]
        text = path.read_text()
        assert text.count(change[1]) >= 1, change
        path.write_text(text.replace(change[1], change[2] if len(change) > 2 else ";", 1))
    return _priced(folder)


def test_what_was_counted_by_hand_and_no_mutant(tmp_path: Path) -> None:
    _library(tmp_path)
    changes: dict[str, tuple[str, ...]] = {"": (), **MUTANTS}
    with ThreadPoolExecutor(2) as pool:
        made = {
            name: pool.submit(_mutant, tmp_path / str(i), change)
            for i, (name, change) in enumerate(changes.items())
        }
    said = {name: future.result() for name, future in made.items()}
    found = {name: int(cycles) for name, cycles in map(str.split, said[""].splitlines())}
    assert found == CYCLES
    assert [name for name in MUTANTS if said[name] == said[""]] == []
