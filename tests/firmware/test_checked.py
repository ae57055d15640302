"""What ``serenity build`` says of its checks, where it places, and what it leaves alone."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conformance.writer import Node, T, tflite
from tests.firmware.projects import needs_board, needs_host
from tests.firmware.small import build, positions, windows
from tests.firmware.test_command import TWO_MEMORIES
from tvm_serenity.cli.projects import advice
from tvm_serenity.commands.replay import replay
from tvm_serenity.errors import CheckError, WrongResultError
from tvm_serenity.firmware.board import image
from tvm_serenity.firmware.board.sizes import sizes
from tvm_serenity.firmware.kernels.parts import calls
from tvm_serenity.frontends.relax import to_relax
from tvm_serenity.rows import Feature, Layer, Network
from tvm_serenity.rows.choose import check_splittable

Patch = pytest.MonkeyPatch
Printed = pytest.CaptureFixture[str]


@needs_host
def test_what_was_compared_is_said(monkeypatch: Patch, tmp_path: Path, capsys: Printed) -> None:
    assert build(monkeypatch, windows(), tmp_path, "--json") == 0
    said = capsys.readouterr()
    found = json.loads(said.out)["check"]
    assert found["skipped"] is None
    assert (found["kernels"], found["tensors"]) == (5, 5)
    assert found["input_sets"] >= 15
    assert "comparing kernels" in said.err
    stored = json.loads((tmp_path / "made" / "metadata.json").read_text())["check"]
    assert stored["kernels"] == 5


def test_not_comparing_is_said(monkeypatch: Patch, tmp_path: Path, capsys: Printed) -> None:
    assert build(monkeypatch, windows(), tmp_path, "--no-check") == 0
    assert "nothing was compared" in " ".join(capsys.readouterr().out.split())
    stored = json.loads((tmp_path / "made" / "metadata.json").read_text())["check"]
    assert stored["skipped"] == "--no-check: nothing was compared"


@needs_host
@pytest.mark.parametrize("options", [("--codegen", "llvm"), ("--in-place",), ("--external-arena",)])
def test_other_forms_are_compared(
    options: tuple[str, ...], monkeypatch: Patch, tmp_path: Path, capsys: Printed
) -> None:
    assert build(monkeypatch, windows(), tmp_path, "--json", *options) == 0
    assert json.loads(capsys.readouterr().out)["check"]["tensors"] == 5


@needs_host
def test_a_constant_without_axes(monkeypatch: Patch, tmp_path: Path, capsys: Printed) -> None:
    pytest.importorskip("ai_edge_litert")
    tensors = [
        T((1, 8), "int8", 0.05, 3),
        T((), "int8", 0.02, -7, data=np.array(90)),
        T((1, 8), "int8", 0.06, -1),
    ]
    path = tmp_path / "model.tflite"
    path.write_bytes(tflite(tensors, [Node("ADD", [0, 1], [2])], [0], [2]))
    assert build(monkeypatch, to_relax(path), tmp_path, "--json") == 0
    assert json.loads(capsys.readouterr().out)["check"]["kernels"] == 1


@needs_host
def test_a_reproducer_shows_it_again(monkeypatch: Patch, tmp_path: Path, capsys: Printed) -> None:
    right = calls.geometry
    monkeypatch.setattr(calls, "geometry", lambda spec: {**right(spec), "left": 0})
    assert build(monkeypatch, windows(), tmp_path) == 1
    (file,) = tmp_path.glob("serenity-wrong-*.npz")
    assert str(file) in capsys.readouterr().err
    with pytest.raises(WrongResultError, match="elements differ"):
        replay(file)


@needs_host
def test_rows_are_not_needed_where_two_memories_do(
    monkeypatch: Patch, tmp_path: Path, capsys: Printed
) -> None:
    board = tmp_path / "hole.toml"
    small = TWO_MEMORIES.replace("9_216", "1_408").replace("8_192", "192")
    board.write_text(small)
    options = ("--board", str(board), "--rows", "auto", "--json", "--no-check")
    assert build(monkeypatch, windows(), tmp_path, *options) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["arena_bytes"]) == {"sram", "ccm"}


@needs_host
@pytest.mark.parametrize("options", [(), ("--rows", "1"), ("--format", "zephyr")])
def test_an_older_project_outlives_a_failing_link(
    options: tuple[str, ...], monkeypatch: Patch, tmp_path: Path
) -> None:
    old = tmp_path / "made" / "model.c"
    old.parent.mkdir()
    old.write_text("old")

    def fails(_directory: Path, *_goals: str, **_named: Any) -> None:
        raise CheckError("sram overflow")

    monkeypatch.setattr(image, "make", fails)
    options = ("--force", "--no-check", *options)
    assert build(monkeypatch, positions(), tmp_path, *options, linked=True) == 2
    assert old.read_text() == "old"
    assert sorted(f.name for f in tmp_path.iterdir()) == ["made"]


@needs_board
def test_code_is_measured_not_assumed(monkeypatch: Patch, tmp_path: Path, capsys: Printed) -> None:
    """Flash is exact: what is linked fits a board of that size, and none that is a byte smaller."""
    board = tmp_path / "exact.toml"
    board.write_text(TWO_MEMORIES)
    options = ("--board", str(board), "--no-check", "--json", "--force")
    assert build(monkeypatch, windows(), tmp_path, *options, linked=True) == 0
    found = json.loads(capsys.readouterr().out)
    taken = sizes(tmp_path / "made" / "build" / "firmware.elf").flash_bytes
    assert found["regions"][0]["need_bytes"] == taken
    assert found["code_bytes"] == taken - found["constant_bytes"] < 12_288
    left = sorted(f.name for f in (tmp_path / "made" / "build").iterdir())
    assert [name for name in left if name.endswith((".elf", ".map"))] == [
        "firmware.elf",
        "firmware.map",
    ]
    for size, status in ((taken, 0), (taken - 1, 1)):
        board.write_text(TWO_MEMORIES.replace("1_048_576", str(size)))
        assert build(monkeypatch, windows(), tmp_path, *options, linked=True) == status
        found = json.loads(capsys.readouterr().out)
        assert found["regions"][0]["shortfall_bytes"] == status
    assert sorted(f.name for f in (tmp_path / "made" / "build").iterdir()) == left
    assert [f.name for f in tmp_path.iterdir() if f.is_dir()] == ["made"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--rows", "1", "--ram", "1000"), "leave nothing for tensors"),
        (("--rows", "1", "--in-place"), "--rows 1 does not take --in-place"),
        (("--rows", "1", "--codegen", "llvm"), "--rows 1 does not take --codegen llvm"),
    ],
)
def test_refused_before_anything_is_read(
    options: Any, message: str, monkeypatch: Patch, tmp_path: Path, capsys: Printed
) -> None:
    assert build(monkeypatch, None, tmp_path, *options) == 2
    assert message in capsys.readouterr().err


def test_what_to_do_next() -> None:
    assert advice("project", "out", "net") == "serenity verify out"
    assert "tvmgen_net.h" in advice("mlf", "out", "net")
    assert "ZEPHYR_EXTRA_MODULES=/" in advice("zephyr", "out", "net")
    assert "--library out" in advice("arduino", "out", "net")


def test_a_batch_is_why_there_are_no_rows() -> None:
    features = (Feature("x", 1, 640_000, 1, (20, 16, 50, 40), "uint8"), Feature("y", 1, 4))
    layers = (Layer("l", "ADD", (0,), (1,), (None,)),)
    with pytest.raises(Exception, match="only 4-D tensors with a batch of 1"):
        check_splittable(Network("net", features, layers, (0,), (1,)))


@needs_host
@pytest.mark.parametrize("options", [(), ("--external-arena",)])
def test_bands_are_spread_over_two_memories(
    options: tuple[str, ...], monkeypatch: Patch, tmp_path: Path, capsys: Printed
) -> None:
    board = tmp_path / "hole.toml"
    small = TWO_MEMORIES.replace("9_216", "1_360").replace("8_192", "192")
    board.write_text(small)
    options = ("--board", str(board), "--rows", "2", "--json", *options)
    assert build(monkeypatch, windows(), tmp_path, *options) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["arena_bytes"]) == {"sram", "ccm"}
    assert found["fits"]
    assert found["rows"]["met"]
    assert found["check"]["tensors"] > 5
    assert max(found["arena_bytes"].values()) < found["rows"]["arena_bytes"]
