"""Micro loops pin every entry of the timing tables of the Cortex-M3 and M4."""

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest

from tests.cycles.programs import assemble, loop, made_board, needs_compiler
from tvm_serenity.boards import Board
from tvm_serenity.cycles import MeasuredCall, cycles_of, estimate
from tvm_serenity.cycles.core import CoreTiming, Instruction, core_timing

pytest.importorskip("unicorn")
pytest.importorskip("capstone")
pytest.importorskip("tvm_serenity._cycles")

# Cycles of a body, without the loop's own subs and bne (1 + 1 + P), as the manuals tell them.
INTEGER = {
    "nop": 1,
    "add r4, r4, #1": 1,
    "mul r4, r4, r5": 1,
    "ssat r4, #8, r5": 1,
    "ldr r4, [r1]": 2,
    "ldrb r4, [r1]": 2,
    "ldr r4, [r1]; ldr r9, [r2]": 3,
    "ldr r4, [r1]; ldr r9, [r2]; ldr r10, [r2, #4]": 4,
    "str r2, [r1]; ldr r4, [r1]; ldr r9, [r4]": 1 + 2 + 2,
    "ldr r4, [r1]; add r4, r4, #1": 3,
    "add r1, r1, #0; ldr r4, [r1]": 1 + 1 + 2,
    "str r4, [r1, #4]": 1,
    "ldr r4, [r1]; str r4, [r2]": 3,
    "str r4, [r1, r3]": 2,
    "ldr r4, [r1]; str r4, [r2, r3]": 3,
    "ldrd r4, r9, [r1]": 3,
    "strd r4, r9, [r1]": 3,
    "ldm r1, {r4, r9, r10, r11}": 5,
    "stm r1, {r4, r9, r10, r11}": 5,
    "push {r4, r9}; pop {r4, r9}": 6,
    "ldr r4, [r7]": 2 + 2,
    "ldr r4, [r8]": 2 + 1,
    "ldrh r4, [r7]": 2 + 1,
    "udiv r4, r5, r6": 2,
    "udiv r4, r6, r5": 12,
    "sdiv r4, r5, r6": 2,
    "cmp r5, #1; it ne; addne r4, r4, #1": 2,
    "cmp r5, #1; it eq; addeq r4, r4, #1": 2,
    "cmp.w r5, #1; it eq; addeq r4, r4, #1": 3,
    "mrs r4, primask": 1,
}
FLOAT = {
    "vadd.f32 s0, s1, s2": 1,
    "vadd.f32 s0, s1, s2; vadd.f32 s3, s0, s2": 3,
    "vfma.f32 s0, s1, s2": 3,
    "vfma.f32 s0, s1, s2; vfma.f32 s3, s1, s2": 6,
    "vfma.f32 s0, s1, s2; vfma.f32 s0, s1, s2; nop": 8,
    "vdiv.f32 s0, s1, s2": 14,
    "vsqrt.f32 s0, s1": 14,
    "vmov s0, s1": 1,
    "vmov r4, s1": 1,
    "vmov r4, r9, s2, s3": 2,
    "vldr s0, [r1]": 2,
    "vldr d0, [r1]": 3,
    "vstr s0, [r1]": 2,
    "vldmia r1, {s0-s3}": 5,
    "vstmia r1, {s0-s3}": 5,
}
DSP = {
    "mla r4, r4, r5, r3": 1,
    "smull r4, r9, r5, r3": 1,
    "smlal r4, r9, r5, r3": 1,
    "smlad r4, r5, r3, r4": 1,
    "sxtb16 r4, r5": 1,
}
M4 = {**INTEGER, **DSP, **FLOAT}
M3 = {
    **INTEGER,
    "mla r4, r4, r5, r3": 2,
    "smull r4, r9, r5, r3": 3,
    "smlal r4, r9, r5, r3": 4,
}


def _cost(elf: Path, board: Board, index: int) -> tuple[float, float]:
    """Cycles of one round of loop ``index``: with the least and the most refill."""
    counts = []
    for name in (f"few{index}", f"many{index}"):
        counts.append(cycles_of(elf, board, MeasuredCall(function=name, entry=name)).cycles)
    (few_low, few_high), (many_low, many_high) = counts
    return (many_low - few_low) / 100, (many_high - few_high) / 100


def _functions(bodies: Mapping[str, object]) -> dict[str, str]:
    made = {}
    for i, body in enumerate(bodies):
        made[f"few{i}"], made[f"many{i}"] = loop(body, 100), loop(body, 200)
    return made


@pytest.fixture(scope="module")
def m4(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Board]:
    folder = tmp_path_factory.mktemp("m4")
    return assemble(folder, _functions(M4)), made_board(folder)


@needs_compiler
def test_every_loop_takes_what_the_manual_says(m4: tuple[Path, Board]) -> None:
    wrong = {}
    for i, (body, cycles) in enumerate(M4.items()):
        found = _cost(*m4, i)
        if found != (cycles + 3, cycles + 4):
            wrong[body] = (cycles, found[0] - 3, found[1] - 4)
    assert not wrong


@needs_compiler
def test_loops_on_the_cortex_m3(tmp_path: Path) -> None:
    elf = assemble(tmp_path, _functions(M3), "cortex-m3")
    board = made_board(tmp_path, core="cortex-m3")
    wrong = {}
    for i, (body, cycles) in enumerate(M3.items()):
        found = _cost(elf, board, i)
        if found != (cycles + 3, cycles + 4):
            wrong[body] = (cycles, found[0] - 3, found[1] - 4)
    assert not wrong


def _groups() -> list[str]:
    text = (resources.files("tvm_serenity.targets") / "cores" / "cortex-m4.toml").read_text()
    return [group["names"].split()[0] for group in tomllib.loads(text)["instructions"]]


PINNED_ELSEWHERE = {"ldr+pc", "b", "bx", "tbb"}
"""By ``test_branches``."""


def _dearer(core: CoreTiming, name: str) -> CoreTiming:
    """The table with one cycle more for the group of ``name``."""
    group: Instruction = core.instructions[name]
    dearer = replace(group, cycles=group.cycles + 1, most=group.most + 1)
    changed = {n: dearer if i == group else i for n, i in core.instructions.items()}
    return replace(core, instructions=changed)


@needs_compiler
@pytest.mark.parametrize("name", [n for n in _groups() if n not in PINNED_ELSEWHERE])
def test_a_wrong_entry_of_the_table_is_seen(
    name: str, m4: tuple[Path, Board], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = _dearer(core_timing("cortex-m4"), name)
    monkeypatch.setattr(estimate, "core_timing", lambda *_: table)
    words = {n for n, i in table.instructions.items() if i == table.instructions[name]}
    words = {w.partition("+")[0] for w in words}
    for i, (body, cycles) in enumerate(M4.items()):
        if not any(part.split()[0].partition(".")[0] in words for part in body.split("; ")):
            continue
        if _cost(*m4, i) != (cycles + 3, cycles + 4):
            return
    raise AssertionError(f"no loop pins {name}")


BRANCHES = {
    # cycles of the loop's body with a refill of 1 and of 2 for direct branches, always 2 for others
    "b 2f; .align 2; 2: nop": (1 + 1 + 1, 1 + 2 + 1),
    "cbz r5, 2f; 2: nop": (1 + 1, 1 + 1),
    "bl leaf": (1 + 1 + 1 + 2, 1 + 2 + 1 + 2),
    "ldr r4, =leaf; blx r4": (2 + 1 + 2 + 1 + 2,) * 2,
    "adr r4, 3f; add r4, r4, #1; str r4, [r1]; .align 2; ldr pc, [r1]; nop; nop; 3: nop": (
        1 + 1 + 1 + 3 + 2 + 1,
    )
    * 2,
    "mov r4, #0; tbb [pc, r4]; .byte 1, 0; nop": (1 + 4 + 2 + 1,) * 2,
}


@needs_compiler
def test_branches(tmp_path: Path) -> None:
    functions = _functions(BRANCHES) | {"leaf": " bx lr\n .ltorg\n"}
    elf, board = assemble(tmp_path, functions), made_board(tmp_path)
    wrong = {}
    for i, (body, (low, high)) in enumerate(BRANCHES.items()):
        found = _cost(elf, board, i)
        if found != (low + 3, high + 4):
            wrong[body] = (low, high, found[0] - 3, found[1] - 4)
    assert not wrong
