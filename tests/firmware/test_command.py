"""``serenity build``, ``run`` and ``verify`` as a user meets them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.run import serenity
from tests.firmware.projects import AD, HELLO, KWS, SWIFTNET, VWW, model, needs_board, needs_host
from tvm_serenity.errors import CheckError, InputError, MissingPartError
from tvm_serenity.firmware.board.toolchain import require
from tvm_serenity.firmware.emit.project import replaced, write_files, write_project


def build(*arguments: object, status: int = 0) -> Any:
    """Return the JSON of ``serenity build ARGUMENTS --json``."""
    found = serenity("build", *arguments, "--json")
    assert found.returncode == status, found.stderr
    return json.loads(found.stdout)


@needs_board
def test_build_run_verify(tmp_path: Path) -> None:
    target = tmp_path / "hello"
    built = build(model(HELLO), "--board", "stm32vldiscovery", "-o", target)
    assert built["fits"]
    assert sorted(built["arena_bytes"]) == ["sram"]
    assert (target / "build" / "firmware.elf").is_file()
    data = tmp_path / "x.npy"
    np.save(data, np.array([[17]], np.int8))
    outputs = []
    for where in ("--host", "--qemu"):
        found = serenity("run", target, where, "--input", data, "--json")
        assert found.returncode == 0, found.stderr
        outputs.append(json.loads(found.stdout)["outputs"])
    assert outputs[0] == outputs[1]
    found = serenity("verify", target, "--json")
    assert found.returncode == 0, found.stderr
    report = json.loads(found.stdout)
    assert set(report) >= {
        *("identical", "max_abs_error", "instructions", "ram", "flash", "board", "host", "qemu"),
    }
    assert set(report["ram"]) == {"arena_bytes", "stack_bytes", "data_bytes", "bss_bytes"}
    assert set(report["flash"]) == {"code_bytes", "const_bytes"}
    assert report["identical"]


def test_constants_larger_than_the_flash_are_refused_before_anything_is_compiled(
    tmp_path: Path,
) -> None:
    target = tmp_path / "ad"
    refused = build(model(AD), "--board", "stm32vldiscovery", "-o", target, status=1)
    assert refused["regions"][0]["need_bytes"] == refused["constant_bytes"] > 128 * 1024
    assert refused["code_bytes"] is None
    assert refused["tried"] == []  # no other way has less of them
    assert not target.exists()


def test_a_model_that_does_not_fit_is_refused_with_the_shortfall(tmp_path: Path) -> None:
    target = tmp_path / "vww"
    whole = ("--rows", "off")
    refused = build(model(VWW), "--board", "microbit", "-o", target, *whole, status=1)
    sram = next(r for r in refused["regions"] if r["name"] == "sram")
    assert sram["shortfall_bytes"] == sram["need_bytes"] - sram["size_bytes"] > 0
    assert sum(t["size_bytes"] for t in refused["peak"]) == refused["peak_bytes"] == 55_296
    assert "lm3s6965evb" in refused["boards"]
    assert "microbit" not in refused["boards"]
    assert not target.exists()
    text = serenity("build", model(VWW), "--board", "microbit", "-o", target, *whole)
    assert text.returncode == 1
    said = " ".join(text.stdout.split())
    assert f"{sram['shortfall_bytes']:,} bytes short" in said
    assert "live at the peak" in said


@needs_board
def test_what_does_not_fit_whole_is_built_in_a_way_that_does(tmp_path: Path) -> None:
    """KWS within 6 KB: by rows, verified; what options decide is left to them."""
    target = tmp_path / "kws"
    limited = (
        model(KWS),
        "--board",
        "mps2-an386",
        "--minimise",
        "off",
        "-o",
        target,
        "--ram",
        "6K",
    )
    built = build(*limited)
    *others, way = built["tried"]
    assert next(one["strategy"] for one in others) == "unsplit"
    assert not any(one["fits"] for one in others)
    assert way["fits"]
    assert way["strategy"].startswith("bands of")
    assert sum(built["arena_bytes"].values()) == way["arena_bytes"] < 5_000
    found = serenity("verify", target, "--inputs", "4", "--json")
    assert found.returncode == 0, found.stderr
    refused = build(*limited, "--in-place", "--force", status=1)
    assert refused["rows"] is None
    reasons = [one["reason"] for one in refused["tried"] if one["reason"]]
    assert reasons == [
        "--rows auto does not take --in-place: bands are placed separately, so that no kernel "
        "overwrites one; "
        "leave out --in-place or --rows"
    ]
    assert build(*limited[:-2], "--force", "--no-check")["tried"] == []


@needs_board
def test_what_writing_over_makes_fit_is_not_cut_into_rows(tmp_path: Path) -> None:
    """KWS within 10 KB: whole, its results over what its layers have read."""
    target = tmp_path / "kws"
    limited = ("--board", "mps2-an386", "--minimise", "off", "-o", target, "--ram", "10K")
    built = build(model(KWS), *limited)
    *others, way = built["tried"]
    assert [one["strategy"] for one in others[:2]] == ["unsplit", "unsplit, in place"]
    assert not any(one["fits"] for one in others)
    assert way["strategy"] == "unsplit, in place, overlap"
    assert built["rows"] is None
    assert sum(built["arena_bytes"].values()) == way["arena_bytes"] < others[-1]["arena_bytes"]
    found = serenity("verify", target, "--inputs", "4", "--json")
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["qemu"]["identical"]


@needs_host
def test_only_our_order_fits(tmp_path: Path) -> None:
    """SwiftNet on the 256 KiB of an nRF52840, whole: refused in the file's order, not in ours."""
    arguments = (model(SWIFTNET), "--board", "nrf52840-dk", "-o", tmp_path / "swiftnet")
    plain = ("--minimise", "off", "--rows", "off", "--no-check")
    refused = build(*arguments, "--order", "given", *plain, status=1)
    assert not refused["fits"]
    built = build(*arguments, *plain)
    assert built["fits"]
    assert built["tried"] == []
    found = serenity("verify", tmp_path / "swiftnet", "--host", "--json")
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["host"]["identical"]


TWO_MEMORIES = """
title = "A Cortex-M4 whose RAM has a hole"
source = "made up for this test"
qemu = "mps2-an386"
[core]
name = "cortex-m4"
fpu = true
dsp = true
mve = false
clock_mhz = 25
alignment_bytes = 16
[toolchain]
gcc = "-mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16"
llvm_triple = "thumbv7em-unknown-none-eabihf"
[[regions]]
name = "flash"
kind = "flash"
address = 0x0
size_bytes = 1_048_576
[[regions]]
name = "sram"
kind = "sram"
address = 0x20000000
size_bytes = 9_216
[[regions]]
name = "ccm"
kind = "ccm"
address = 0x20010000
size_bytes = 8_192
"""


@needs_board
def test_tensors_are_spread_over_two_memories(tmp_path: Path) -> None:
    board = tmp_path / "hole.toml"
    board.write_text(TWO_MEMORIES)
    built = build(model(KWS), "--board", board, "-o", tmp_path / "kws")
    assert set(built["arena_bytes"]) == {"sram", "ccm"}
    found = serenity("verify", tmp_path / "kws", "--inputs", "4", "--json")
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["qemu"]["identical"]


def test_what_fails_leaves_nothing(tmp_path: Path) -> None:
    target = tmp_path / "project"

    def fail() -> None:
        with replaced(target, False) as made:
            write_files({"new.c": b"new"}, made)
            raise CheckError(f"{made}: overflow")

    with pytest.raises(CheckError, match=f"{target}: overflow"):
        fail()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("end", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_an_interrupted_build_leaves_what_was_there(
    end: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "project"
    write_project({"old.c": b"old"}, target)

    def failing(path: Path, _data: bytes) -> int:
        raise end

    monkeypatch.setattr(Path, "write_bytes", failing)
    with pytest.raises((InputError, KeyboardInterrupt)):
        write_project({"new.c": b"new"}, target, force=True)
    assert [f.name for f in tmp_path.iterdir()] == ["project"]
    assert [f.name for f in target.iterdir()] == ["old.c"]


def test_what_is_refused(tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "mine.txt").write_text("kept")
    broken = tmp_path / "broken.toml"
    broken.write_text('title = "x\n')
    for arguments, said in (
        ((model(KWS), "--board", "no-such", "-o", tmp_path / "a"), "unknown board 'no-such'"),
        ((model(KWS), "--board", broken, "-o", tmp_path / "a"), "line 1"),
        ((model(KWS), "--board", "mps2-an386", "-o", full), "is not empty"),
        ((model(KWS), "--board", "mps2-an386", "-o", tmp_path / "a", "--codegen", "x"), "c, llvm"),
    ):
        found = serenity("build", *arguments)
        assert found.returncode == 2
        assert said in found.stderr
        assert len(found.stderr.splitlines()) == 1
    assert [f.name for f in full.iterdir()] == ["mine.txt"]
    assert serenity("verify", full).returncode == 2
    limited = build(
        *(model(KWS), "--board", "mps2-an386", "-o", tmp_path / "a", "--arena-limit", 15_999),
        *("--rows", "off", "--minimise", "off"),
        status=1,
    )
    assert limited["arena_bytes"] == {"sram": 16_000}
    assert not (tmp_path / "a").exists()


def test_a_missing_toolchain_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingPartError, match="apt-get install gcc-arm-none-eabi"):
        require("arm-none-eabi-gcc")
