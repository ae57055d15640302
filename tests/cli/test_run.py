"""Commands run in the process of the tests leave it as it was."""

import gc
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from tests.cli.run import in_process, serenity


def ends_with(status: object) -> int:
    def work() -> None:
        sys.exit(status)  # type: ignore[arg-type]

    return in_process(work, ["it"]).returncode


@pytest.mark.parametrize(("status", "returned"), [(None, 0), (0, 0), (2, 2), ("no", 1)])
def test_the_status_is_pythons(status: object, returned: int) -> None:
    assert ends_with(status) == returned


def test_an_exception_is_a_traceback() -> None:
    def work() -> None:
        raise ValueError("it is wrong")

    done = in_process(work, ["it"])
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Traceback")
    assert "ValueError: it is wrong" in done.stderr


def test_both_streams_hold_what_children_write_as_well() -> None:
    def work() -> None:
        print("first")
        subprocess.run(["sh", "-c", "echo second; echo third >&2"], check=True)
        warnings.warn("fourth", stacklevel=1)

    done = in_process(work, ["it"])
    assert done.stdout == "first\nsecond\n"
    assert done.stderr.startswith("third\n")
    assert "UserWarning: fourth" in done.stderr


def test_the_process_is_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIVEN", "before")

    def work() -> None:
        assert (sys.argv, Path.cwd()) == (["it", "word"], tmp_path)
        os.environ["GIVEN"] = "other"
        os.environ["MORE"] = "1"
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        gc.freeze()
        gc.set_threshold(1, 2, 3)

    before = sys.argv, Path.cwd(), signal.getsignal(signal.SIGINT), gc.get_threshold()
    variables = dict(os.environ)
    assert in_process(work, ["it", "word"], cwd=tmp_path).returncode == 0
    assert (sys.argv, Path.cwd(), signal.getsignal(signal.SIGINT), gc.get_threshold()) == before
    assert dict(os.environ) == variables
    assert gc.get_freeze_count() == 0


def test_lines_are_as_wide_as_asked() -> None:
    widths = [
        max(map(len, serenity("zoo", columns=columns).stdout.splitlines())) for columns in (60, 200)
    ]
    assert widths[0] <= 60 < widths[1] <= 200
