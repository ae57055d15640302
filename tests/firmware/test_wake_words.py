"""A streaming wake word with its states as variables, through every command."""

import json
from pathlib import Path

import numpy as np

from benchmarks.wake_words import Form, Step
from tests.cli.run import answer, serenity
from tests.firmware.projects import needs_board
from tvm_serenity import firmware

STEPS = 70
"""More steps than are compared without the option."""


@needs_board
def test_commands_take_a_streaming_wake_word(tmp_path: Path) -> None:
    form = Form(5, 2, 1, shortcut=True, mixed=True)
    path, made = tmp_path / "net.tflite", tmp_path / "made"
    path.write_bytes(Step(form).data)
    assert answer("schedule", path)["schedule"]["peak_bytes"] > 0
    told = serenity("explain", path)
    assert "build --sliding leaves them in the arena" in told.stdout, told.stderr
    page = tmp_path / "page.html"
    assert serenity("report", path, "-o", page).returncode == 0
    assert page.exists()
    board = ("--board", "mps2-an386", "--sliding", str(form.stride))
    built = serenity("build", path, *board, "--windows", str(STEPS), "-o", made)
    assert built.returncode == 0, built.stderr
    found = json.loads(serenity("verify", made, "--json").stdout)
    assert found["host"]["accepted"]
    assert found["qemu"]["accepted"]
    assert found["qemu"]["litert_max_abs_error"] == 0
    outputs = firmware.load(made).reference["litert0"]
    assert len(outputs) == STEPS
    assert len(np.unique(outputs)) > 5
