"""Firmware on emulated boards: every tensor, counts, and a plan that is wrong."""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cases import only_exhaustive, sampled
from tests.conformance.builder import Net
from tests.conformance.quantise import integer_file, ranges
from tests.firmware.projects import (
    HELLO,
    HELLO_FLOAT,
    KWS,
    SWIFTNET,
    TRANSPOSED,
    VWW,
    build,
    built,
    needs_board,
    needs_riscv,
    project,
)
from tvm_serenity import firmware
from tvm_serenity.architectures import architecture
from tvm_serenity.errors import CheckError
from tvm_serenity.firmware.board.execute import emulated
from tvm_serenity.firmware.board.toolchain import make
from tvm_serenity.firmware.check.verify_report import report
from tvm_serenity.firmware.compile import driver, unsplit
from tvm_serenity.firmware.compile.unsplit_program import Assembled, assembled
from tvm_serenity.firmware.program import Bands, Data, Program
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.validation.references import ReferenceRuntime

pytestmark = needs_board


@pytest.mark.parametrize(
    ("name", "target", "instructions", "arena"),
    [
        (KWS, "mps2-an386", 7_700_000, 16_000),
        (KWS, "lm3s6965evb", 11_000_000, 16_000),
        (KWS, "mps3-an547", 1_010_000, 16_000),
        only_exhaustive((KWS, "mps2-an521", 11_000_000, 16_000)),
        only_exhaustive((VWW, "netduinoplus2", 20_000_000, 55_296)),
        only_exhaustive((HELLO, "stm32vldiscovery", 5_000, 48)),
        (HELLO, "microbit", 10_000, 48),
        pytest.param(KWS, "qemu-virt", 15_000_000, 16_000, marks=needs_riscv),
        pytest.param(HELLO, "rv32imc:16K:128K", 6_000, 48, marks=needs_riscv),
        only_exhaustive((SWIFTNET, "mps2-an500", 120_000_000, 202_000)),
    ],
)
def test_every_tensor_is_tvms_and_the_output_litert_s(
    name: str, target: str, instructions: int, arena: int, tmp_path: Path
) -> None:
    found = report(project(tmp_path, name, target))
    for where in ("host", "qemu"):
        assert found[where]["identical"], found[where]
        assert found[where]["litert_max_abs_error"] == 0
    assert found["max_abs_error"] == 0
    assert 0 < found["instructions"] <= instructions
    assert found["ram"]["arena_bytes"] <= arena
    assert 0 < found["ram"]["stack_bytes"] <= 1024
    assert found["ram"]["data_bytes"] + found["ram"]["bss_bytes"] <= 128
    most = 14_336 if name == SWIFTNET else 12_288
    assert found["flash"]["code_bytes"] <= most


@pytest.mark.parametrize(
    ("target", "bits"),
    sampled([("mps2-an386", 4), ("mps3-an547", 4), ("mps3-an547", 8), ("microbit", 4)], 2),
)
def test_channels_of_any_number(target: str, bits: int, tmp_path: Path) -> None:
    """Parts of vectors, outputs that do not fill a group, and weights of 4 bits."""
    net = Net(6)
    x = net.conv(net.input(1, 9, 8, 3), 34, 3, stride=2, activation="RELU")
    x = net.conv(net.depthwise(x, 3, activation="RELU6"), 21, 1)
    net.output(net.dense(net.reshape(x, 1, -1), 7))
    with ReferenceRuntime() as reference:
        (tmp_path / "four.tflite").write_bytes(integer_file(net, ranges(net, reference), bits=bits))
    settings = Settings(name="four", output=tmp_path / "made", check=False)
    built = firmware.build(tmp_path / "four.tflite", target, settings)
    kernels = built.files["four_kernels.c"].decode()
    assert ("depthwise_line_int8_w4" in kernels) == (bits == 4)
    assert ("convolve_int8_w4" in kernels) == (bits == 4)
    found = report(built)
    for where in ("host", "qemu"):
        assert found[where]["identical"], found[where]
        assert found[where]["litert_max_abs_error"] == 0


def test_kernels_written_from_tir_alone(tmp_path: Path) -> None:
    found = report(project(tmp_path, KWS, "mps2-an386", tuned=False))
    assert found["identical"]


@pytest.mark.parametrize(
    "target", ["mps2-an500", "microbit", pytest.param("qemu-virt", marks=needs_riscv)]
)
def test_a_float_network_is_within_two_ulp(target: str, tmp_path: Path) -> None:
    found = report(project(tmp_path, HELLO_FLOAT, target))
    assert found["accepted"]
    assert max(found[where]["max_ulp"] for where in ("host", "qemu")) <= 2


@pytest.mark.parametrize("rows", ["off", 1])
def test_an_input_that_nothing_reads(rows: int | str, tmp_path: Path) -> None:
    """The shape of what a transposed convolution makes is an input, and known beforehand."""
    found = report(project(tmp_path, TRANSPOSED, "mps2-an386", rows=rows))
    assert found["identical"]
    assert found["qemu"]["litert_max_abs_error"] == 0


def overlapping(program: Program) -> Program:
    """A plan with the result of the third step put onto what that step reads."""
    step = program.steps[2]
    read = next(a.tensor for a in step.arguments if isinstance(a, Data))
    bands, moved, place = list(program.bands), step.writes[0], program.place(read)
    bands[moved] = Bands.unsplit(place.region, place.offset_bytes + 64)
    arena = {r: n + 8_000 for r, n in program.arena_bytes.items()}
    return replace(program, bands=tuple(bands), arena_bytes=arena)


def test_an_overlapping_offset_is_found_by_the_check_and_by_the_trace(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def moved(*given: Any) -> Assembled:
        found = assembled(*given)
        return replace(found, program=overlapping(found.program))

    third = built(KWS, "mps2-an386").metadata  # before the fault: later tests share this build
    monkeypatch.setattr(unsplit, "assembled", moved)
    with pytest.raises(CheckError, match="overwritten"):
        build(KWS, "mps2-an386")
    monkeypatch.setattr(driver, "check", lambda _program: None)
    found = report(build(KWS, "mps2-an386", output=tmp_path / "made"))
    assert not found["accepted"]
    (wrong,) = third["steps"][2]["writes"]
    for where in ("host", "qemu"):
        assert found[where]["first_difference"] == third["tensors"][wrong]["name"]


STACK_USER = """
#include <stdint.h>
#include "port.h"
#include "port_files.h"

__attribute__((noinline)) static void use(uint32_t bytes)
{
    volatile uint8_t *const held = __builtin_alloca(bytes);
    for (uint32_t i = 0; i < bytes; ++i) {
        held[i] = 1;
    }
}

int main(void)
{
    const uint32_t used[] = {0u, 1000u, 60000u, 100000u};
    for (uint32_t i = 0; i < sizeof used / sizeof used[0]; ++i) {
        use(used[i]);
        port_report("stack", port_stack_used());
    }
    return 0;
}
"""


def test_the_stack_is_measured_below_the_paint_too(tmp_path: Path) -> None:
    """Start-up paints 64 KiB of a stack of 4 MiB; a deeper one is told as the whole stack."""
    found = project(tmp_path, HELLO, "mps2-an386")
    (found.folder / "main.c").write_text(STACK_USER)
    make(found.folder, "build/firmware.elf")
    run = emulated(architecture("arm").toolchain.emulator, "mps2-an386")
    done = subprocess.run(
        [*run, "-kernel", "build/firmware.elf"],
        cwd=found.folder, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    said = (done.stdout + done.stderr).split()
    idle, small, large, beyond = (int(one) for one in said[1::2])
    assert 0 < idle < 500
    assert 1_000 <= small < idle + 1_100
    assert 60_000 <= large < 61_000
    assert beyond > 4_000_000


def test_the_linker_refuses_what_does_not_fit(tmp_path: Path) -> None:
    project(tmp_path, KWS, "lm3s6965evb")
    small = built(HELLO, "stm32vldiscovery").files["link.ld"]
    (tmp_path / "link.ld").write_bytes(small)
    with pytest.raises(CheckError, match="overflow"):
        make(tmp_path, "all")


def test_the_caller_s_arena(tmp_path: Path) -> None:
    found = report(project(tmp_path, HELLO, "mps2-an386", external_arena=True))
    assert found["identical"]
    source = (tmp_path / "net_model.c").read_text()
    assert "static uint8_t" not in source
    assert "arenas->sram" in source
