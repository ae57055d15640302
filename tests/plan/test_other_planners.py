"""Other planners of placements, as programs that answer, lie, crash and hang."""

import sys
from functools import partial
from pathlib import Path

import pytest

from benchmarks.placements import measure
from tests.plan.other_planners import idealloc, minimalloc
from tvm_serenity.plan import Buffer, plan

LIVES = ((0, 3, 2), (2, 5, 2), (0, 2, 3), (3, 5, 3), (1, 4, 1))
BUFFERS = [Buffer(f"b{i}", *life) for i, life in enumerate(LIVES)]
BEST = plan(BUFFERS).offsets


def program(folder: Path, body: str) -> Path:
    path = folder / "program"
    path.write_text(f"#!{sys.executable}\nimport sys, time\n{body}\n")
    path.chmod(0o755)
    return path


def offsets_printed(offsets: tuple[int, ...]) -> str:
    return "\n".join(f"print('offset', {i}, {at})" for i, at in enumerate(offsets))


@pytest.mark.parametrize(
    ("body", "cell"),
    [
        (offsets_printed(BEST), "1.0000 "),
        (offsets_printed((0,) * 5), "invalid: "),
        ("", "prints no offsets"),
        ("sys.exit(101)", "crashed (101)"),
        ("time.sleep(60)", "out of time"),
    ],
)
def test_what_idealloc_answers(tmp_path: Path, body: str, cell: str) -> None:
    planner = partial(idealloc, program(tmp_path, body))
    assert measure(planner, BUFFERS, 0.5, 1).startswith(cell)


def test_idealloc_reads_lives_that_hold_a_step_between_their_ends(tmp_path: Path) -> None:
    refuses = "if '4,2,8,1' not in open(sys.argv[2]).read().split(): sys.exit(1)\n"
    body = refuses + offsets_printed(BEST)
    assert measure(partial(idealloc, program(tmp_path, body)), BUFFERS, 0.5, 1)[:6] == "1.0000"


REFUSES_THE_BOUND = f"""
given = dict(argument[2:].split("=") for argument in sys.argv[1:])
if int(given["capacity"]) < 7:
    sys.exit(1)
header, *rows = open(given["input"]).read().split()
placed = [f"{{row}},{{at + 1}}" for row, at in zip(rows, {BEST})]
open(given["output"], "w").write("\\n".join([header + ",offset", *placed]))
"""


@pytest.mark.parametrize(
    ("body", "cell"),
    [
        (REFUSES_THE_BOUND, "1.1667 "),
        ("sys.exit(1)", "none in time"),
        ("sys.exit(2)", "crashed (2)"),
        ("time.sleep(60)", "out of time"),
    ],
)
def test_what_minimalloc_answers(tmp_path: Path, body: str, cell: str) -> None:
    planner = partial(minimalloc, program(tmp_path, body))
    assert measure(planner, BUFFERS, 1.0, 1).startswith(cell)


def test_a_planner_that_ends_its_process_is_said_to(tmp_path: Path) -> None:
    assert measure(lambda *_: sys.exit(3), BUFFERS, 1.0, 1) == "crashed (3)"
