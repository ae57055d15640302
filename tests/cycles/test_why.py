"""``serenity build --why`` gives each operator the instructions of its own kernel."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.firmware.projects import needs_board
from tests.firmware.small import build, counting, positions, windows
from tvm_serenity.firmware.board.latency import latency, spent_on
from tvm_serenity.firmware.result import load

pytest.importorskip("unicorn")
pytest.importorskip("capstone")
pytest.importorskip("tvm_serenity._cycles")

PRICED = ("--board", "nucleo-l4r5zi", "--no-check", "--why", "--rows")
FORMS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "whole": (windows, ("off",)),
    "in place": (windows, ("off", "--in-place")),
    "over": (windows, ("off", "--overlap")),
    "given order": (windows, ("off", "--order", "given")),
    "llvm": (windows, ("off", "--codegen", "llvm")),
    "rows": (windows, ("2",)),
    "variants": (positions, ("1",)),
    "state": (counting, ("off",)),
}


def choices(
    form: str, monkeypatch: pytest.MonkeyPatch, folder: Path, capsys: pytest.CaptureFixture[str]
) -> list[dict[str, Any]]:
    """What JSON says of the operators of a network."""
    network, options = FORMS[form]
    assert build(monkeypatch, network(), folder, *PRICED, *options, "--json", linked=True) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["choices"]
    return found


def misplaced(folder: Path, said: list[dict[str, Any]]) -> list[str]:
    """Kernels that are said to take less than the profile of functions has, or all too much."""
    found = latency(load(folder / "made"))
    own = {part.name: part.instructions for part in found.functions}
    spent: Counter[str] = Counter()
    for one in said:
        spent[one["kernel"]] += one["instructions"]
        assert 0 < one["cycles"][0] <= one["cycles"][1]
    assert sum(spent.values()) <= found.instructions
    return [name for name, count in spent.items() if count < own[f"net_{name}"]]


@needs_board
@pytest.mark.parametrize("form", FORMS)
def test_operators_have_what_their_kernels_take(
    form: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = choices(form, monkeypatch, tmp_path, capsys)
    operators = load(tmp_path / "made").metadata["operators"]
    assert [one["kernel"] for one in said] == [o["kernels"][0] for o in operators]
    if form != "variants":  # whose kernels' further variants have functions of their own
        assert misplaced(tmp_path, said) == []


@needs_board
def test_another_order_is_seen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def turned(project: Any, found: Any) -> Any:
        *parts, last = spent_on(project, found)
        return (last, *parts)

    monkeypatch.setattr("tvm_serenity.cli.kernel_choices.spent_on", turned)
    assert misplaced(tmp_path, choices("llvm", monkeypatch, tmp_path, capsys))


@needs_board
def test_the_table_says_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = choices("whole", monkeypatch, tmp_path, capsys)
    assert build(monkeypatch, windows(), tmp_path, *PRICED, "off", "--force", linked=True) == 0
    text = capsys.readouterr().out
    for one in said:
        assert f"{one['instructions']:,}" in text


@needs_board
def test_a_board_without_a_timing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--no-check", "--why")
    assert build(monkeypatch, windows(), tmp_path, *options, linked=True) == 0
    assert "cycles are not known: mps2-an386 has no [timing]" in capsys.readouterr().out
    assert build(monkeypatch, windows(), tmp_path, *options, "--force", "--json", linked=True) == 0
    said = json.loads(capsys.readouterr().out)["choices"]
    assert {(one["instructions"], one["cycles"]) for one in said} == {(None, None)}
