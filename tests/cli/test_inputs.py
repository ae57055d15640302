"""Files that are none, and names that look like something else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.run import serenity


@pytest.mark.parametrize(
    "command",
    [
        ("plan", "FILE"),
        ("sparse", "order", "--edges", "FILE", "--memory", "10"),
        ("schedule", "FILE.txt"),
        ("build", "zoo:swiftnet-cell-a", "--board", "FILE.toml", "-o", "out"),
        ("check", "zoo:swiftnet-cell-a", "FILE"),
    ],
)
@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_what_may_have_no_end_is_refused(
    kind: str, command: tuple[str, ...], tmp_path: Path
) -> None:
    arguments = []
    for word in command:
        if word.startswith("FILE"):
            path = tmp_path / f"it{word.removeprefix('FILE')}"
            if kind == "pipe":
                os.mkfifo(path)
            elif kind == "device":
                path.symlink_to("/dev/zero")
            else:
                path.mkdir()
            word = str(path)
        arguments.append(word)
    done = serenity(*arguments)
    assert done.returncode == 2
    assert "regular file" in done.stderr or "directory" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_package_is_a_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tvm_serenity", "zoo", "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0
    assert "Usage" in done.stdout


def test_a_name_between_colons_is_no_emoji(tmp_path: Path) -> None:
    model = tmp_path / "m.txt"
    model.write_text(
        'input ":fire:"[8]\n":+1:" relu: ":fire:" -> ":boom:"[80]\n'
        'last add: ":boom:" -> ":cat:"[8]\noutput ":cat:"\n'
    )
    for command in ("inspect", "explain", "schedule"):
        done = serenity(command, str(model))
        assert done.returncode == 0, done.stderr
        assert not set("🔥👍💥🐱") & set(done.stdout)
