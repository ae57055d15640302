"""Memories that wait, tables that are wrong, and programs that cannot be priced."""

from importlib import resources
from pathlib import Path

import pytest

from tests.cycles.programs import assemble, loop, made_board, needs_compiler
from tvm_serenity.boards import Board, board, names
from tvm_serenity.cycles import CycleEstimate, MeasuredCall, cycles_of
from tvm_serenity.cycles.board import board_timing
from tvm_serenity.cycles.core import core_names, core_timing
from tvm_serenity.cycles.estimate import claim_of
from tvm_serenity.errors import InputError

pytest.importorskip("unicorn")
pytest.importorskip("capstone")
pytest.importorskip("tvm_serenity._cycles")

# Twice over 64 words of flash, 8 bytes apart.
SWEEP = """ movw r0, #2
2: movw r1, #0x1000
 movt r1, #0x0800
 movw r12, #64
 .align 3
1: ldr r4, [r1]
 add r1, r1, #8
 subs r12, #1
 bne 1b
 subs r0, #1
 bne 2b
 bx lr
 .space 0x1400
"""
CACHE = """
data_cache = "data"
[[timing.caches]]
name = "data"
size_bytes = {size}
line_bytes = 32
sector_bytes = {sector}
ways = {ways}
source = "the test"
"""


def _run(elf: Path, on: Board) -> CycleEstimate:
    return cycles_of(elf, on, MeasuredCall(function="sweep", entry="sweep"))


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return assemble(tmp_path_factory.mktemp("sweep"), {"sweep": SWEEP})


@needs_compiler
@pytest.mark.parametrize(
    ("size", "sector", "ways", "misses"),
    [
        (1024, 8, 32, 64),  # all fit: each is missed once
        (1024, 32, 32, 16),  # and brings its neighbours
        (256, 8, 8, 128),  # half fits: least recently used leaves, nothing stays
        (512, 32, 16, 16),
        (256, 32, 8, 32),
        (256, 32, 1, 32),
        (512, 32, 1, 16),
    ],
)
def test_misses_of_caches(
    sweep: Path, tmp_path: Path, size: int, sector: int, ways: int, misses: int
) -> None:
    cache = CACHE.format(size=size, sector=sector, ways=ways)
    found = _run(sweep, made_board(tmp_path, waits=4, more=cache))
    assert found.caches["data"] == (128 - misses, misses)
    assert found.shares["data in flash"] == 4 * misses


@needs_compiler
def test_waits_without_a_cache(sweep: Path, tmp_path: Path) -> None:
    fast, slow = (_run(sweep, made_board(tmp_path, waits=w)) for w in (0, 3))
    assert "data in flash" not in fast.shares
    assert slow.shares["data in flash"] == 3 * 128
    assert sum(slow.shares.values()) == slow.cycles[1]
    assert slow.instructions == fast.instructions
    assert slow == _run(sweep, made_board(tmp_path, waits=3))


@needs_compiler
def test_instructions_are_prefetched(tmp_path: Path) -> None:
    straight = "\n".join(" add r4, r4, #1" for _ in range(64))
    elf = assemble(tmp_path, {"sweep": f"{straight}\n bx lr\n"})
    stalls = [
        _run(elf, made_board(tmp_path, waits=4, more=more)).shares["instructions from flash"]
        for more in ("", "prefetch = true")
    ]
    # A read of 5 cycles holds two instructions of a cycle each: about 3 of 5 cycles are stalls,
    # and about as many where the next read begins when the last one ends.
    assert 32 * 3 <= stalls[1] <= stalls[0] <= 33 * 4 + 4


@needs_compiler
def test_the_clock_chooses_the_waits(sweep: Path, tmp_path: Path) -> None:
    on = made_board(tmp_path, waits=2)
    run = MeasuredCall(function="sweep", entry="sweep")
    assert cycles_of(sweep, on, run, clock_mhz=200).shares["data in flash"] == 9 * 128
    with pytest.raises(
        InputError, match="'flash' has no wait states for 201 MHz; use a clock of 200 MHz"
    ):
        cycles_of(sweep, on, run, clock_mhz=201)


def test_every_board_and_core_can_be_read() -> None:
    for name in core_names():
        assert core_timing(name).name == name
    timed = [n for n in names() if board_timing(board(n)) is not None]
    assert "nucleo-l4r5zi" in timed
    assert claim_of(board("nucleo-l4r5zi")) == "checked"
    for name in timed:
        timing = board_timing(board(name))
        assert timing is not None
        assert timing.source
        assert all(m.wait_states(timing.clock_mhz) >= 0 for m in timing.memories)


WRONG = [
    ("error_percent = 20", "error_percent = 20\nspeed = 1", r"\[timing\]: unknown key 'speed'"),
    ("error_percent = 20\n", "", r"\[timing\]: 'error_percent' is missing"),
    ('class = "modelled"', 'class = "good"', "'class' is 'good'; choose one of checked, modelled"),
    ('region = "flash"', 'region = "rom"', "'region' is 'rom'; choose one of flash, sram"),
    ("read_bytes = 8", 'read_bytes = "8"', "'read_bytes' is '8'; expected a value of type int"),
    ("[[100, 2], [200, 9]]", "[[200, 9], [100, 2]]", "its clocks must ascend"),
    ("[[100, 2], [200, 9]]", "[100]", r"list of \[maximum MHz, wait states\]"),
    ("read_bytes = 8", 'read_bytes = 8\ndata_cache = "l1"', "'data_cache' is 'l1'"),
    ("[timing]\nclass", '[timing]\ncore = "cortex-z9"\nclass', "no timing table 'cortex-z9'"),
    ("[[timing.memories]]", "[[timing.memory]]", r"\[timing\]: unknown key 'memory'"),
]


@pytest.mark.parametrize(("old", "new", "reason"), WRONG, ids=[w[2][:30] for w in WRONG])
def test_a_malformed_board_is_one_line(tmp_path: Path, old: str, new: str, reason: str) -> None:
    made_board(tmp_path, waits=2)
    path = tmp_path / "board2.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(InputError, match=reason):
        cycles_of("none.elf", board(str(path)), "main")


CORE = [
    ('kind = "divide"', 'kind = "slow"', "'kind' is 'slow'; choose one of alu"),
    ("fetch_words = 3", "fetch_words = 99", "'fetch_words' is 99; expected 1 to 7"),
    ("refill = [1, 2]", "refill = [2, 1]", r"'refill' must be two integers \[least, most\]"),
    ('names = "sdiv udiv"', 'names = "sdiv udiv add"', "'add' is in two groups"),
    ("issue = 1", "issue = 1\nwidth = 2", r"\[pipeline\]: unknown key 'width'"),
    ('model = "m4"', 'model = "m99"', "'model' is 'm99'"),
    ("folds_it = true", "folds_it = 1", "'folds_it' is 1; expected a value of type bool"),
]


@pytest.mark.parametrize(("old", "new", "reason"), CORE, ids=[c[2][:30] for c in CORE])
def test_a_malformed_core_is_one_line(tmp_path: Path, old: str, new: str, reason: str) -> None:
    text = (resources.files("tvm_serenity.targets") / "cores" / "cortex-m4.toml").read_text()
    assert old in text
    path = tmp_path / "mine.toml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=reason):
        core_timing(str(path))


PROGRAMS = {
    "unknown": (" .short 0xffff, 0xffff\n bx lr\n", "the instruction ffffffff at 0x8000000 cannot"),
    "untimed": (" smlad r0, r0, r0, r0\n bx lr\n", "cortex-m3 has no entry for 'smlad'"),
    "far": (
        " mov r0, #0x40000000\n ldr r0, [r0]\n bx lr\n",
        "far accesses 0x40000000, outside of the memory of board0",
    ),
}


@needs_compiler
@pytest.mark.parametrize("name", ["unknown", "untimed", "far"])
def test_a_program_that_cannot_be_priced_is_one_line(tmp_path: Path, name: str) -> None:
    body, reason = PROGRAMS[name]
    elf = assemble(tmp_path, {name: body})
    on = made_board(tmp_path, core="cortex-m3" if name == "untimed" else "cortex-m4")
    with pytest.raises(InputError, match=reason):
        cycles_of(elf, on, MeasuredCall(function=name, entry=name))


@needs_compiler
def test_programs_that_do_not_fit_the_question(tmp_path: Path) -> None:
    elf = assemble(tmp_path, {"first": loop("nop", 3), "other": " bx lr\n"})
    on = made_board(tmp_path)
    with pytest.raises(InputError, match="no function 'third'; choose one of first, other"):
        cycles_of(elf, on, "third")
    with pytest.raises(InputError, match=r"other was not reached|ended the program|accesses"):
        cycles_of(elf, on, "other")
    with pytest.raises(InputError, match="no table \\[timing\\]"):
        cycles_of(elf, board("microbit"), "first")
    text = tmp_path / "text.elf"
    text.write_text("no program")
    with pytest.raises(InputError, match="not an ELF file"):
        cycles_of(text, on, "first")
    damaged = tmp_path / "damaged.elf"
    damaged.write_bytes(elf.read_bytes()[:80])
    with pytest.raises(InputError, match=r"damaged|no segments to load"):
        cycles_of(damaged, on, "first")
    moved = (tmp_path / "board0.toml").read_text().replace("0x08000000", "0x10000000")
    (tmp_path / "away.toml").write_text(moved)
    away = board(str(tmp_path / "away.toml"))
    with pytest.raises(InputError, match="outside of the memory of away"):
        cycles_of(elf, away, "first")
