from pathlib import Path

import pytest

from tests.cli.run import answer, serenity
from tvm_serenity.boards import board, names
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
    assert "unknown board 'toaster'; there are arduino-nano-33-ble" in failed.stderr
