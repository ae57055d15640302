"""The documentation does what it says: its commands and its code run as written."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT, blocks
from tvm_serenity.boards import board

SHELL = """#!/bin/sh
exec "{python}" -m tvm_serenity.cli "$@"
"""


def run(command: list[str], folder: Path) -> str:
    """What a command prints in ``folder``, where ``serenity`` is the command line under test."""
    program = folder / "bin" / "serenity"
    if not program.exists():
        program.parent.mkdir()
        program.write_text(SHELL.format(python=sys.executable))
        program.chmod(0o755)
    path = os.pathsep.join([str(program.parent), os.environ["PATH"]])
    python_path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    found = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path, "PYTHONPATH": python_path, "COLUMNS": "300"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_the_tutorial_runs_as_written(tmp_path: Path) -> None:
    pytest.importorskip("plotly")
    printed, ran = "", 0
    for block in blocks("tutorial.md"):
        if block.language == "sh":
            printed, ran = run(["sh", "-eu", "-c", block.text], tmp_path), ran + 1
        elif block.language == "text":
            said = [" ".join(line.split()) for line in printed.splitlines()]
            for line in block.text.splitlines():
                assert any(" ".join(line.split()) in s for s in said), (line, printed)
    assert ran == 7
    assert (tmp_path / "report.html").stat().st_size > 10**6


@pytest.mark.parametrize("index", range(3))
def test_search_for_architectures_runs(index: int, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    code = [b.text for b in blocks("how-to/nas.md") if b.language == "python"][index]
    printed = run([sys.executable, "-W", "ignore", "-c", code], tmp_path)
    expected = ["24576", "45056", "[200, 400]"]
    assert printed.strip() == expected[index]


def test_inside_tvm_runs(tmp_path: Path) -> None:
    code = [b.text for b in blocks("how-to/tvm.md") if b.language == "python"]
    run([sys.executable, "-W", "ignore", "-c", code[0]], tmp_path)


def test_the_board_of_the_guide_is_one(tmp_path: Path) -> None:
    (text,) = (b.text for b in blocks("how-to/board.md") if b.language == "toml")
    file = tmp_path / "my-board.toml"
    file.write_text(text)
    found = board(str(file))
    assert (found.ram_bytes, found.flash_bytes) == (131_072, 524_288)


def test_every_command_is_in_the_reference() -> None:
    import typer

    from tvm_serenity.cli import app, commands

    assert commands.__all__
    known = {c.name for c in typer.main.get_group(app).commands.values()}
    page = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `serenity ")]
    assert {row.split()[2].strip("`") for row in rows} == known


def test_every_benchmark_is_on_the_page_of_figures() -> None:
    page = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    for script in sorted((ROOT / "benchmarks").glob("*.py")):
        assert f"python benchmarks/{script.name}" in page, script.name
