import re
from pathlib import Path

import pytest

from tests.cli.run import answer, serenity
from tvm_serenity.boards import aliases, board, names
from tvm_serenity.cores import core_files
from tvm_serenity.errors import InputError

GOOD = """
title = "mine"
source = "its datasheet"
[core]
name = "cortex-m4"
fpu = true
dsp = true
mve = false
clock_mhz = 64
alignment_bytes = 16
[toolchain]
gcc = "-mcpu=cortex-m4"
llvm_triple = "thumbv7em-unknown-none-eabihf"
[[regions]]
name = "flash"
kind = "flash"
address = 0x0
size_bytes = 1024
[[regions]]
name = "sram"
kind = "sram"
address = 0x20000000
size_bytes = 512
"""


def test_the_boards_and_their_memory() -> None:
    assert len(names()) >= 21
    found = {name: board(name) for name in names()}
    kib = {name: (b.ram_bytes / 1024, b.flash_bytes / 1024) for name, b in found.items()}
    assert kib["sparkfun-edge"] == (384, 1024)
    assert kib["nucleo-f767zi"] == (512, 2048)
    assert kib["lm3s6965evb"] == (64, 256)
    assert kib["stm32vldiscovery"] == (8, 128)
    assert kib["microbit"] == (16, 256)
    assert kib["netduinoplus2"] == (128 + 64, 1024)
    assert all(b.source and b.core.clock_mhz > 0 for b in found.values())


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("[core]", "[core", "line 4"),
        ('kind = "sram"', 'kind = "cheese"', "kind 'cheese' of a region; there are flash"),
        ("size_bytes = 512", "size_bytes = -1", "'size_bytes' is -1"),
        ("size_bytes = 512", "", "'size_bytes' is missing"),
        ("fpu = true", "fpu = 1", "'fpu' is missing or not of type bool"),
        ("0x20000000", "0x200", "overlap"),
        ('kind = "flash"', 'kind = "sram"', "needs a region of flash"),
    ],
)
def test_what_is_wrong_in_a_users_file_is_named(
    old: str, new: str, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD)
    assert board(str(path)).ram_bytes == 512
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(InputError, match=r"mine\.toml") as caught:
        board(str(path))
    assert reason in str(caught.value)


def test_the_command_lists_and_shows(tmp_path: Path) -> None:
    listed = answer("boards")
    assert listed["nrf52840-dk"]["ram_bytes"] == 256 * 1024
    assert "microbit" in serenity("boards").stdout
    assert (
        "512" in serenity("boards", "nucleo-h743zi").stdout
        or "524,288" in serenity("boards", "nucleo-h743zi").stdout
    )
    failed = serenity("boards", "toaster")
    assert failed.returncode == 2
    assert "unknown board 'toaster': `serenity boards` lists all" in failed.stderr


def test_a_chip_or_a_short_name_is_its_board() -> None:
    assert board("STM32L4R5") == board("nucleo-l4r5zi")
    assert board("pico").name == "rpi-pico"
    assert board("nRF52840").name == "nrf52840-dk"
    assert not set(aliases()) & set(names())
    assert sum(len(board(name).aliases) for name in names()) == len(aliases())


def test_an_unknown_board_names_those_most_like_it() -> None:
    with pytest.raises(InputError, match="did you mean nucleo-l4r5zi"):
        board("nucleo-l4r5")


def test_a_core_with_sizes_is_a_board() -> None:
    made = board("cortex-m4:256K:1M")
    assert (made.ram_bytes, made.flash_bytes) == (256 * 1024, 1024 * 1024)
    assert made.qemu == "mps2-an386"
    assert made.gcc == board("mps2-an386").gcc
    assert board(made.name) == made  # as a project's metadata names it
    assert board("cortex-m4:8M:1M").qemu is None  # the machine has 4 MB
    for core in core_files():
        assert board(f"{core}:16K:64K").ram_bytes == 16 * 1024


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("cortex-m4:0:1M", "size '0'"),
        ("cortex-m4:64K:x", "size 'x'"),
        ("cortex-m4:1G:1M", "1,073,741,824 bytes of ram: write a size from 1 to"),
        ("cortex-m4:64K:1G", "1,073,741,824 bytes of flash: write a size from 1 to"),
        ("cortex-m9:64K:1M", "unknown core 'cortex-m9'"),
    ],
)
def test_sizes_that_no_board_has_are_refused(spec: str, reason: str) -> None:
    with pytest.raises(InputError, match=re.escape(reason)):
        board(spec)


def test_a_chip_is_its_core_and_sizes_in_every_command(tmp_path: Path) -> None:
    graph = tmp_path / "graph.txt"
    graph.write_text("input x[100]i8\na: x -> y[300]i8\noutput y\n")
    chip = ("--cpu", "cortex-m4", "--ram", "2K", "--flash", "64K")
    found = answer("explain", graph, *chip)
    assert found["board"] == "cortex-m4:2048:65536"
    assert found == answer("explain", graph, "--board", "cortex-m4:2048:65536")
    shown = {"explain": (), "report": ("-o", tmp_path / "page.html"), "fit": ()}
    shown["build"] = ("-o", tmp_path / "project")
    for name, more in shown.items():
        both = serenity(name, graph, "--board", "microbit", *chip, *more)
        assert both.returncode == 2
        assert "--board microbit does not take --cpu cortex-m4: leave one out" in both.stderr
        half = serenity(name, graph, *chip[:4], *more)
        assert half.returncode == 2
        assert "--cpu goes with --flash: a chip is its core, RAM and flash" in half.stderr
        unknown = serenity(name, graph, "--cpu", "z80", *chip[2:], *more)
        assert unknown.returncode == 2
        assert "unknown core 'z80'" in unknown.stderr
    none = serenity("build", graph, "-o", tmp_path / "project")
    assert none.returncode == 2
    assert "no board: give --board NAME, or --cpu CORE with --ram and --flash" in none.stderr


def test_boards_that_a_model_fits(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The figures are those of ``serenity build``; a board that is too small says what it lacks."""
    pytest.importorskip("tvm")
    names_of = "tvm_serenity.commands.boards.names"
    monkeypatch.setattr(names_of, lambda: ("microbit", "nucleo-l4r5zi", "stm32vldiscovery"))
    model = shared / "models/mlperf_tiny/ad01_int8.tflite"
    found = answer("boards", "--fits", model)
    assert list(found) == ["nucleo-l4r5zi", "stm32vldiscovery", "microbit"]  # fits, then by RAM
    best = found["nucleo-l4r5zi"]["best"]
    built = ("build", model, "--board", "nucleo-l4r5zi", "-o", tmp_path / "ad", "--no-check")
    assert best["build"] == answer(*built)["search"]["build"]
    short = found["microbit"]["best"]
    assert not short["fits"]
    assert short["short"][0].startswith("flash ")
    text = serenity("boards", "--fits", model, columns=80).stdout
    assert f"{best['build']['ram_bytes']:,}" in text
    assert "fits 1 of 3 boards" in text
    assert f"too small: {short['short'][0]} short" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80
