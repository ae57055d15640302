"""Projects of earlier runs: taken where all is the same, made again where anything is not."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.firmware.projects import HELLO, model, needs_board
from tvm_serenity.boards import board
from tvm_serenity.errors import FitError
from tvm_serenity.firmware import building, kept
from tvm_serenity.firmware.board import latency
from tvm_serenity.firmware.building import build
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.system import cache, sources

pytestmark = needs_board
BOARD = "nucleo-l4r5zi"


@pytest.fixture(autouse=True)
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Use an empty cache; return a list that grows with every project that is made."""
    monkeypatch.setenv(cache.FOLDER, str(tmp_path / "cache"))
    monkeypatch.setattr(kept, "entries", cache.opened)
    counted: list[Any] = []
    really = building._built

    def counting(model: Any, *given: Any) -> Any:
        counted.append(model)
        return really(model, *given)

    monkeypatch.setattr(building, "_built", counting)
    return counted


@pytest.fixture
def hello(tmp_path: Path) -> Path:
    return Path(shutil.copy(model(HELLO), tmp_path / "hello.tflite"))


def tree(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_a_second_build_is_the_first(hello: Path, tmp_path: Path, made: list[Any]) -> None:
    said: list[str] = []
    settings = [Settings(output=tmp_path / n, notify=said.append) for n in ("first", "second")]
    first, second = (build(str(hello), BOARD, one) for one in settings)
    assert len(made) == 1
    assert "taking the project from an earlier run of the same build" in said
    assert tree(tmp_path / "first") == tree(tmp_path / "second")
    assert second.directory == tmp_path / "second"
    assert second.files == first.files
    assert second.reference.keys() == first.reference.keys()
    for name, array in first.reference.items():
        np.testing.assert_array_equal(second.reference[name], array)
    text = first.facts["check"]["text"]
    assert second.facts["check"]["text"] == f"{text}; {kept.EARLIER}"


def test_a_project_that_is_not_written_is_kept_as_well(hello: Path, made: list[Any]) -> None:
    first, second = (build(str(hello), BOARD) for _ in range(2))
    assert len(made) == 1
    assert second.directory is None
    assert second.files == first.files


def test_another_file_board_or_option_is_another_build(
    hello: Path, made: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    target = board(BOARD)
    build(str(hello), target, Settings(check=False))
    regions = tuple(replace(r, size_bytes=r.size_bytes - 1024) for r in target.regions)
    build(str(hello), replace(target, regions=regions), Settings(check=False))
    build(str(hello), target, Settings(check=False, stack_bytes=2048))
    monkeypatch.setenv("LDFLAGS", "")
    build(str(hello), target, Settings(check=False))
    monkeypatch.delenv("LDFLAGS")
    data = hello.read_bytes()
    hello.write_bytes(data + b"\0")
    build(str(hello), target, Settings(check=False))
    hello.write_bytes(data)
    monkeypatch.setattr(sources, "own_digest", lambda: "another version")
    build(str(hello), target, Settings(check=False))
    assert len(made) == 6
    build(str(hello), target, Settings(check=False))
    assert len(made) == 6


def test_a_search_with_a_limit_and_what_fails_are_made_again(hello: Path, made: list[Any]) -> None:
    for _ in range(2):
        build(str(hello), BOARD, Settings(check=False, time_limit_s=5))
        with pytest.raises(FitError):
            build(str(hello), BOARD, Settings(check=False, arena_limit_bytes=1))
    assert len(made) == 4


def test_a_damaged_entry_is_made_again(hello: Path, tmp_path: Path, made: list[Any]) -> None:
    build(str(hello), BOARD, Settings(check=False))
    for path in (tmp_path / "cache").glob("??/*"):
        path.write_bytes(path.read_bytes()[:-40])
    build(str(hello), BOARD, Settings(check=False))
    assert len(made) == 2


def test_an_estimate_is_emulated_once(
    hello: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("unicorn")
    project = build(str(hello), BOARD, Settings(output=tmp_path / "made", check=False))
    first = latency.latency(project)
    monkeypatch.setattr(latency, "cycles_of", None)
    assert latency.latency(project) == first
    with pytest.raises(TypeError):
        latency.latency(project, clock_mhz=80)
