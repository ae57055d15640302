"""Constants that are copied to RAM at start: counted to the byte, refused where too many."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.firmware.projects import HELLO, KWS, build, model, needs_board, project
from tests.firmware.test_workspace_growth import module
from tvm_serenity import firmware
from tvm_serenity.boards import Board, board
from tvm_serenity.firmware import Settings, building, kept
from tvm_serenity.firmware.check import loaded_constants
from tvm_serenity.firmware.check.loaded_constants import check_constants
from tvm_serenity.firmware.check.report import CheckReport
from tvm_serenity.firmware.check.verify_report import report
from tvm_serenity.firmware.compile import fallback
from tvm_serenity.firmware.program import Program

BOARD = "mps2-an386"


def with_ram(size: int) -> Board:
    """The board with one memory of this size."""
    known = board(BOARD)
    kept = tuple(r for r in known.regions if r.kind == "flash" or r.name == "sram")
    return replace(
        known,
        regions=tuple(replace(r, size_bytes=size) if r.name == "sram" else r for r in kept),
    )


def made(target: Board, **options: Any) -> Any:
    settings = Settings(**{"time_limit_s": 2, "rows": "off", "constants": "ram", **options})
    return fallback.make(module(), "net", target, settings)


def test_they_are_counted_to_the_byte() -> None:
    found = made(with_ram(1 << 20))
    held = sum(found.placed.arena_bytes.values()) + found.program.copied_bytes + 1_024 + 128
    assert found.program.copied_bytes >= found.program.constant_bytes > 5_000
    assert found.placed.fits
    assert made(with_ram(held)).placed.fits
    assert not made(with_ram(held - 1)).placed.fits
    in_flash = made(with_ram(held - 1), constants="flash")
    assert in_flash.placed.fits
    assert in_flash.program.copied_bytes == 0


def test_they_come_before_workspace_of_faster_kernels() -> None:
    plain, grown = (made(with_ram(1 << 20), workspace=size) for size in ("least", "grow"))
    arenas = [sum(one.placed.arena_bytes.values()) for one in (plain, grown)]
    assert arenas[0] < arenas[1]
    least = arenas[0] + plain.program.copied_bytes + 1_024 + 128
    found = made(with_ram(least), workspace="grow")
    assert found.placed.fits
    assert sum(found.placed.arena_bytes.values()) == arenas[0]


def test_a_limit_of_all_ram_counts_them() -> None:
    found = made(with_ram(1 << 20))
    held = sum(found.placed.arena_bytes.values()) + found.program.copied_bytes + 1_024 + 128
    given = {"rows": "needed", "order": "given"}  # bands are refused, so it stays whole
    assert made(with_ram(1 << 20), ram_bytes=held, **given).placed.fits
    least = made(with_ram(1 << 20), ram_bytes=held // 2, **given)
    assert not least.placed.fits


@needs_board
@pytest.mark.parametrize(("name", "target"), [(KWS, BOARD), (HELLO, "microbit")])
def test_they_are_where_kernels_read_them(name: str, target: str, tmp_path: Path) -> None:
    plain = project(tmp_path / "flash", name, target)
    copied = project(tmp_path / "ram", name, target, constants="ram")
    in_flash, in_ram = report(plain), report(copied)
    assert in_flash["identical"]
    assert in_ram["identical"]
    assert in_ram["instructions"] == in_flash["instructions"]
    more = in_ram["ram"]["data_bytes"] - in_flash["ram"]["data_bytes"]
    held = in_ram["flash"]["const_bytes"]
    assert in_flash["flash"]["const_bytes"] - held <= more
    assert more >= build(name, target).facts["constant_bytes"]


@needs_board
def test_constants_of_zeros_are_where_the_start_up_code_zeroes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MCUNet has such: compilers put arrays of zeros that may change into .bss."""
    skipped = (CheckReport(skipped="left out"), dict[str, Any]())
    monkeypatch.setattr(building._Work, "checked", lambda _self, _texts: skipped)
    monkeypatch.setattr(kept, "entries", lambda: None)
    counted = []

    def counting(image: Path, program: Program) -> int:
        counted.append(check_constants(image, program))
        assert any(not constant.array.any() for constant in program.constants)
        return counted[-1]

    monkeypatch.setattr(loaded_constants, "check_constants", counting)
    settings = Settings(constants="ram", workspace="grow", output=tmp_path / "made")
    firmware.build(model("mcunet/mcunet_vww_int8.tflite"), "nucleo-l4r5zi", settings)
    assert counted[0] > 50
