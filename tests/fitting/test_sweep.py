"""``serenity fit MODELS --boards``: what each pair fits by; no pair ends the sweep."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

pytest.importorskip("tvm")

from tests.conformance.writer import T
from tests.firmware.projects import KWS, model, needs_board
from tests.quantize.test_operators import IMAGE, conv, weights
from tvm_serenity import firmware
from tvm_serenity.boards import board
from tvm_serenity.cli import app
from tvm_serenity.cli.commands import register
from tvm_serenity.errors import FitError, InputError
from tvm_serenity.firmware import Settings
from tvm_serenity.fitting.sweep import ModelOnBoards, counts, point_file, points
from tvm_serenity.search.sweeps import run_sweep

register()

BOARDS = ("microbit", "netduinoplus2")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("sweep") / "conv.tflite"
    kernel = T((8, 3, 3, 4), "int8", 0.08, data=weights(8, 3, 3, 4) // 64)
    file.write_bytes(conv(IMAGE, kernel, T((1, 7, 6, 8), "int8", 0.02, -5)))
    return str(file)


def swept(*models: str, seconds: float = 60) -> list[ModelOnBoards]:
    return points(models, [board(name) for name in BOARDS], Settings(time_limit_s=2), seconds)


@needs_board
def test_a_pair_fits_by_what_a_build_shows() -> None:
    kws = model(KWS)
    rows = run_sweep(swept(str(kws)))
    assert [(row["board"], row["fits_by"]) for row in rows] == [
        ("microbit", "rows"),
        ("netduinoplus2", "unsplit"),
    ]
    assert counts(rows) == {"unsplit": 1, "rows": 2, "fit": 2}
    with pytest.raises(FitError):
        firmware.build(kws, "microbit", Settings(rows="off", check=False))
    built = firmware.build(kws, "netduinoplus2", Settings(rows="off", check=False))
    assert rows[1]["flash_bytes"] == built.facts["regions"][0]["need_bytes"]
    assert rows[1]["arena_bytes"] == sum(built.facts["arena_bytes"].values())


def test_what_cannot_be_read_is_said(small: str, tmp_path: Path) -> None:
    broken = tmp_path / "broken.tflite"
    broken.write_bytes(b"no model")
    rows = run_sweep(swept(str(broken), small))
    assert [row["fits_by"] for row in rows] == [None, None, "unsplit", "unsplit"]
    assert "broken.tflite" in rows[0]["why_not"]
    with pytest.raises(InputError, match="no pairs"):
        points([], [board("microbit")], Settings(), 1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="pairs are isolated by fork")
def test_a_pair_that_crashes_or_hangs_is_a_row(small: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = ModelOnBoards.pair

    def failing(self: ModelOnBoards, maker: Any) -> Any:
        if maker.board.name == "microbit":
            os.abort() if self.seconds > 10 else time.sleep(100)
        return whole(self, maker)

    monkeypatch.setattr(ModelOnBoards, "pair", failing)
    for seconds, words in ((60, "died of SIGABRT"), (8, "returned no result for 8 s")):
        (point,) = swept(small, seconds=seconds)
        rows = point.rows()
        assert rows[0]["fits_by"] is None
        assert words in rows[0]["why_not"]
        assert rows[1]["fits_by"] == "unsplit"


def test_a_sweep_goes_on_where_it_ended(small: str, tmp_path: Path) -> None:
    keep = tmp_path / "fits.points"
    asked = ["fit", small, "--boards", ",".join(BOARDS), "--resume", str(keep), "--json"]
    first = CliRunner().invoke(app, asked)
    assert first.exit_code == 0, first.output
    done = point_file(keep).load()
    assert len(done) == 1
    written = keep.stat().st_mtime_ns
    assert CliRunner().invoke(app, asked).stdout == first.stdout
    assert keep.stat().st_mtime_ns == written
    said = json.loads(first.stdout)
    assert said["counts"] == {"pairs": 2, "unsplit": 2, "rows": 2, "fit": 2}
    shown = CliRunner().invoke(app, asked[:-1])
    assert "fit unsplit" in shown.stdout
    Path(small).write_bytes(Path(small).read_bytes() + b"\0")  # another file: not what was kept
    assert points([small], [board(n) for n in BOARDS], Settings(), 1)[0].key() not in done


def test_processes_find_the_same(small: str) -> None:
    def timeless(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**row, "seconds": 0} for row in rows]

    work = swept(small)
    assert timeless(run_sweep(work, jobs=2)) == timeless(run_sweep(work))


def test_options_of_one_model_are_refused(small: str) -> None:
    for asked, words in (
        (["--boards", "microbit", "--ram", "8K"], "--ram is for one model and one board"),
        (["--resume", "x"], "--resume is for --boards or several models"),
        (["--boards", "microbit", "--stream-input", "yes"], "a sweep cannot require it"),
    ):
        run = CliRunner().invoke(app, ["fit", small, *asked])
        assert isinstance(run.exception, InputError)
        assert words in str(run.exception)
