"""The documentation does what it says: its commands and its code run as written."""

import re
import shutil
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT, blocks
from tests.docs.running import run_python, run_shell
from tvm_serenity.boards import board


def test_the_tutorial_runs_as_written(tmp_path: Path) -> None:
    printed, ran = "", 0
    for block in blocks("docs/start/tutorial.md"):
        if block.language == "sh":
            printed, ran = run_shell(block.text, tmp_path), ran + 1
        elif block.language == "text":
            said = [" ".join(line.split()) for line in printed.splitlines()]
            for line in block.text.splitlines():
                assert any(" ".join(line.split()) in s for s in said), (line, printed)
    assert ran == 7
    assert (tmp_path / "report.html").stat().st_size > 20_000


@pytest.mark.parametrize("index", range(5))
def test_search_for_architectures_runs(index: int, tmp_path: Path, shared: Path) -> None:
    pytest.importorskip("torch")
    shutil.copy(shared / "models/mlperf_tiny/kws_dscnn_int8.tflite", tmp_path / "kws.tflite")
    code = [b.text for b in blocks("docs/how-to/nas.md") if b.language == "python"][index]
    printed = run_python(code, tmp_path)
    expected = ["24576", "17 13", r"16000 \d{4} Deployed\(.*", "45056", r"\[200, 400\]"]
    assert re.fullmatch(expected[index], printed.strip())


def test_the_board_of_the_guide_is_one(tmp_path: Path) -> None:
    (text,) = (b.text for b in blocks("docs/how-to/board.md") if b.language == "toml")
    file = tmp_path / "my-board.toml"
    file.write_text(text)
    found = board(str(file))
    assert (found.ram_bytes, found.flash_bytes) == (131_072, 524_288)


def test_every_command_is_in_the_reference() -> None:
    import typer

    from tvm_serenity.cli import app
    from tvm_serenity.cli.commands import register

    register()
    known = {c.name for c in typer.main.get_group(app).commands.values()}
    page = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `serenity ")]
    assert {row.split()[2].strip("`") for row in rows} == known


def test_every_benchmark_is_on_the_page_of_results() -> None:
    page = (DOCS / "results" / "index.md").read_text(encoding="utf-8")
    for script in sorted((ROOT / "benchmarks").glob("*.py")):
        assert f"python benchmarks/{script.name}" in page, script.name
