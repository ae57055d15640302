"""What commands write on a terminal, and where there is none: no control characters, no silence."""

import random
import sys
import time
from pathlib import Path

import pytest

from tvm_serenity.cli import app, show
from tvm_serenity.cli.commands import register
from tvm_serenity.graph.text import dump, parse
from tvm_serenity.system.counted import Counted

register()
CONTROL = "\x1b\x07\x08\x0c\x7f\x85\x9b\x90\u200e\u202e\u2066\ufeff"
GRAPH = parse("input x[64]\na RELU: x -> y[64]\nb RELU: y -> z[64]\noutput z\n")
COMMANDS = (
    ("schedule", "--check"),
    ("inspect",),
    ("inspect", "--compact"),
    ("explain",),
    ("offchip",),
)


def hostile(rng: random.Random) -> str:
    letters = [rng.choice(CONTROL + "[]31mJc;") for _ in range(rng.randrange(1, 12))]
    return "n" + "".join(letters) + rng.choice(CONTROL)


def named(rng: random.Random) -> str:
    """The graph with a hostile name for everything that has one."""
    used: set[str] = set()

    def fresh() -> str:
        name = hostile(rng)
        while name in used:
            name = hostile(rng)
        used.add(name)
        return name

    from dataclasses import replace

    tensors = tuple(replace(t, name=fresh()) for t in GRAPH.tensors)
    ops = tuple(replace(op, name=fresh(), kind=fresh()) for op in GRAPH.ops)
    return dump(GRAPH.replace(name=fresh(), tensors=tensors, ops=ops))


@pytest.mark.parametrize("seed", range(4))
def test_names_and_paths_write_no_control_characters(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(seed)
    path = tmp_path / f"{hostile(rng).replace('/', '')}.txt"
    path.write_text(named(rng))
    for command, *options in COMMANDS:
        app([command, str(path), *options], standalone_mode=False)
        out, err = capsys.readouterr()
        assert out
        found = {c for c in out + err if not c.isprintable() and c != "\n"}
        assert not found, (command, sorted(map(ascii, found)))


def test_a_console_without_escapes_is_seen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A seeded fault: names as they are."""
    monkeypatch.setattr(show, "printable", lambda text: text)
    path = tmp_path / "graph.txt"
    path.write_text(named(random.Random(0)))
    app(["schedule", str(path)], standalone_mode=False)
    assert any(not c.isprintable() and c != "\n" for c in capsys.readouterr().out)


def test_what_takes_long_says_so_without_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(show, "PLAIN_EVERY_S", 0.05)
    with show.progress("reading\x1b[2J") as line:
        time.sleep(0.5)
        line.step("placing")
    said = capsys.readouterr().err.splitlines()
    assert len(said) >= 3
    assert said[0] == r"serenity: reading\x1b[2J"
    assert "serenity: placing" in said
    assert not sys.stderr.isatty()


def test_what_is_short_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with show.progress("ordering"):
        pass
    assert capsys.readouterr() == ("", "")


def test_what_is_counted_is_a_bar_on_a_terminal() -> None:
    shown: list[str] = []

    class Status:
        def update(self, text: str) -> None:
            shown.append(text)

    line = show.ProgressLine("compiling m", show.PlainConsole(quiet=True), Status())  # type: ignore[arg-type]
    for count in (1, 4, 8):
        line.step(Counted("validating kernels", count, 8))
    full, empty = "\u2588", "\u2591"
    assert shown == [
        f"compiling m: {full * 3 * n}{empty * (24 - 3 * n)} validating kernels: {n} of 8"
        for n in (1, 4, 8)
    ]


def test_what_is_counted_is_one_line_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    line = show.ProgressLine("compiling m", show.PlainConsole(stderr=True))
    for count in range(1, 9):
        line.step(Counted("validating kernels", count, 8))
    assert capsys.readouterr().err == "serenity: validating kernels: 8 of 8\n"


def test_a_command_names_its_stage_within_a_second(capsys: pytest.CaptureFixture[str]) -> None:
    with show.progress("reading m.tflite"):
        time.sleep(1.6)
    assert capsys.readouterr().err.splitlines()[0] == "serenity: reading m.tflite"
