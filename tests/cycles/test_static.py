"""Blocks that QEMU counts, priced by a table alone: against the manual and QEMU's own count."""

from pathlib import Path
from typing import Any

import pytest

from tests.cycles.programs import needs_compiler
from tvm_serenity.boards import board
from tvm_serenity.cycles.core import core_timing
from tvm_serenity.cycles.static import BlockCounts, BlockLine, static_cycles
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.firmware.board.toolchain import have

M4 = core_timing("cortex-m4")

# One block each; cycles as the manual of the Cortex-M4 tells them, in a row.
BLOCKS = {
    "add r4, r4, #1; movs r0, #2; mul r1, r2, r3": (3, 3),
    "ldr r4, [r1]": (2, 2),
    "ldr.w r4, [r1]; ldrb r5, [r2, #4]": (3, 3),
    "ldr r4, [r1]; ldr r5, [r4]": (4, 4),
    "ldr r4, [r1]; add r4, r4, #1; ldr r5, [r2]": (5, 5),
    "str r4, [r1, #4]": (1, 1),
    "str.w r4, [r1, r3]": (2, 2),
    "ldm r1, {r4, r5, r6}": (4, 4),
    "ldmia r1!, {r4, r5, r6}": (4, 4),
    "push {r4, r5, lr}": (4, 4),
    "udiv r4, r5, r6": (2, 12),
    "smlad r4, r5, r6, r7": (1, 1),
    "it ne; ldrne r4, [r1]": (2, 3),
    "vfma.f32 s0, s1, s2": (3, 3),
    "vldr d0, [r1]": (3, 3),
    "ldrd r4, r5, [r1]": (3, 3),
    "ldrd r4, r5, [r1]; ldr r6, [r2]": (5, 5),
    "vldmia r1!, {s0-s3}": (5, 5),
    "vmov r4, r5, s2, s3": (2, 2),
}


def _counts(text: str, following: int | None = None, times: int = 1) -> BlockCounts:
    lines = []
    for i, part in enumerate(text.split("; ")):
        mnemonic, _, operands = part.partition(" ")
        lines.append(BlockLine(2 * i, 2, mnemonic, operands))
    end = 2 * len(lines)
    return BlockCounts({0: tuple(lines)}, {(0, end if following is None else following): times})


@pytest.mark.parametrize("text", BLOCKS)
def test_blocks_take_what_the_manual_says(text: str) -> None:
    assert static_cycles(_counts(text), M4) == BLOCKS[text]
    low, high = BLOCKS[text]
    assert static_cycles(_counts(text, times=7), M4) == (7 * low, 7 * high)


@pytest.mark.parametrize(
    ("text", "taken"),
    [("bne #0", (2, 3)), ("cbz r0, #0", (2, 3)), ("bx lr", (3, 3)), ("bl #0", (2, 3))],
)
def test_branches_that_are_taken_refill(text: str, taken: tuple[int, int]) -> None:
    assert static_cycles(_counts(text), M4) == (1, 1)
    assert static_cycles(_counts(text, following=64), M4) == taken


def test_what_the_table_does_not_know_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="cortex-m3 has no entry for 'smlad'"):
        static_cycles(_counts("smlad r4, r5, r6, r7"), core_timing("cortex-m3"))
    with pytest.raises(UnsupportedError, match="cortex-m7 waits for results"):
        static_cycles(_counts("nop "), core_timing("cortex-m7"))


@needs_compiler
@pytest.mark.skipif(not have("qemu-system-arm"), reason="qemu-system-arm is not installed")
def test_every_instruction_is_counted(tmp_path: Path) -> None:
    from tests.firmware.small import windows
    from tvm_serenity import firmware
    from tvm_serenity.cycles.emulate import installed
    from tvm_serenity.firmware.board.blocks import static_estimate
    from tvm_serenity.firmware.board.latency import latency
    from tvm_serenity.firmware.check.verify import run_qemu

    target = board("netduinoplus2")
    settings = firmware.Settings(output=str(tmp_path / "net"), check=False)
    project = firmware.build(windows(), target, settings)
    count, (low, high) = static_estimate(project, target)
    by_qemu = run_qemu(project, project.reference_inputs(), traced=False).instructions
    assert by_qemu is not None
    # QEMU's count is read from a timer before and after the call
    assert abs(count - by_qemu) <= 32
    assert static_estimate(project, target) == (count, (low, high))
    if installed():
        found = latency(project, target)
        driver = found.shares["core"] + found.shares["branches"]
        assert 0.85 * driver < low <= high < 1.05 * driver


@needs_compiler
@pytest.mark.skipif(not have("qemu-system-arm"), reason="qemu-system-arm is not installed")
@pytest.mark.parametrize("given", [{"rows": 1, "stream_input": True}, {"sliding": 2}])
def test_every_instruction_of_rows_that_are_fed_is_counted(
    given: dict[str, Any], tmp_path: Path
) -> None:
    """All calls of a run, or of a moving window the one that computes a step."""
    from tests.firmware.small import windows
    from tvm_serenity import firmware
    from tvm_serenity.firmware.board.blocks import static_estimate
    from tvm_serenity.firmware.check.verify import run_qemu

    target = board("mps2-an386")
    settings = firmware.Settings(output=str(tmp_path / "net"), check=False, **given)
    project = firmware.build(windows(), target, settings)
    count, _ = static_estimate(project, target)
    by_qemu = run_qemu(project, project.reference_inputs(), traced=False).instructions
    assert by_qemu is not None
    # QEMU's count includes the clock around each call, and all calls of a step
    calls = given.get("sliding") or project.inputs[0]["shape"][1]
    assert 0 <= by_qemu - count <= 200 * calls


@needs_compiler
def test_operators_of_a_project_take_what_it_takes(tmp_path: Path) -> None:
    from tests.firmware.small import windows
    from tvm_serenity import firmware
    from tvm_serenity.cycles.emulate import installed
    from tvm_serenity.firmware.board.latency import latency

    if not installed():
        pytest.skip("unicorn, capstone or the native driver is not installed")
    for rows in ("off", 1):
        settings = firmware.Settings(output=str(tmp_path / str(rows)), rows=rows, check=False)
        project = firmware.build(windows(), "nucleo-l4r5zi", settings)
        operators = project.metadata["operators"]
        tensors = project.metadata["tensors"]
        for one in operators:
            assert set(one) == {"copies", "name", "kernels", "writes"}
            assert one["name"] == tensors[one["writes"][0]]["name"]
        found = latency(project)
        assert [o.name for o in found.operators] == [o["name"] for o in operators]
        spent = sum(o.cycles[1] for o in found.operators)
        assert 0.5 * found.cycles[1] < spent <= found.cycles[1]
        assert found.microjoules is not None
        assert "DS12023" in found.energy_source
