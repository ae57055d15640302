"""The Cortex-M7's table: pairs, latencies and branches that are guessed; every table is sound."""

from pathlib import Path

import pytest

from tests.cycles.programs import assemble, loop, made_board, needs_compiler
from tvm_serenity.cycles import MeasuredCall, cycles_of
from tvm_serenity.cycles.core import core_names, core_timing

pytest.importorskip("unicorn")
pytest.importorskip("capstone")
pytest.importorskip("tvm_serenity._cycles")

# Cycles of twelve instructions or pairs in a row, beyond those of an empty loop of as many.
BODIES = {
    "two independent additions are one cycle": ("add r4, r4, #1; add r9, r9, #1", 1),
    "two dependent ones are two": ("add r4, r4, #1; add r4, r4, #1", 2),
    "products are one a cycle": ("mul r4, r5, r5; mul r9, r5, r5", 2),
    "a chain of products takes their latency": ("mul r4, r4, r5", 2),
    "loads are two a cycle": ("ldr r4, [r1]; ldr r9, [r2]", 1),
    "stores are one a cycle": ("str r4, [r1]; str r4, [r2]", 2),
    "a load and a sum of another": ("ldr r4, [r1]; add r9, r9, #1", 1),
    "a chain of singles takes three": ("vadd.f32 s0, s0, s1", 3),
    "lists go alone, two registers a cycle": ("ldm r1, {r4, r9, r10, r11}", 2),
}
REPEATS = 12


@needs_compiler
def test_pairs_and_latencies(tmp_path: Path) -> None:
    functions = {}
    for i, (body, _) in enumerate(BODIES.values()):
        repeated = "; ".join([body] * REPEATS)
        functions[f"few{i}"], functions[f"many{i}"] = loop(repeated, 100), loop(repeated, 200)
    elf = assemble(tmp_path, functions, "cortex-m7")
    on = made_board(tmp_path, core="cortex-m7")
    wrong = {}
    for i, (name, (_, cycles)) in enumerate(BODIES.items()):
        few, many = (
            cycles_of(elf, on, MeasuredCall(function=f"{n}{i}", entry=f"{n}{i}")).cycles[0]
            for n in ("few", "many")
        )
        found = (many - few) / 100
        # the loop's own subs and bne are guessed right: at most three cycles with the fetch
        if not cycles * REPEATS <= found <= cycles * REPEATS + 3:
            wrong[name] = (cycles * REPEATS, found)
    assert not wrong


@needs_compiler
@pytest.mark.parametrize("core", [n for n in core_names() if core_timing(n).model[0] == "m"])
def test_shares_add_up_and_runs_repeat(core: str, tmp_path: Path) -> None:
    body = "ldr r4, [r1]; adds r4, r4, #1; str r4, [r1]; cmp r4, #3; bne 2f; nop; 2: nop"
    if core == "cortex-m0plus":
        text = " movs r0, #0x20\n lsls r0, r0, #24\n movs r3, #50\n1: ldr r1, [r0]\n"
        text += " adds r1, r1, #1\n str r1, [r0]\n subs r3, #1\n bne 1b\n bx lr\n"
    else:
        text = loop(body, 50)
    cpu = "cortex-m0" if core == "cortex-m0plus" else core
    elf = assemble(tmp_path, {"work": text}, cpu)
    on = made_board(tmp_path, waits=3, core=core)
    found = [cycles_of(elf, on, MeasuredCall(function="work", entry="work")) for _ in range(2)]
    assert found[0] == found[1]
    assert found[0].cycles[0] <= found[0].cycles[1]
    assert sum(found[0].shares.values()) == pytest.approx(
        found[0].cycles[1], abs=found[0].cycles[1] // 20
    )
    assert core_timing(core).source
