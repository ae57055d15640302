"""Firmware that streams tensors from slow memory: bytes as planned, every seeded fault caught."""

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cases import only_exhaustive
from tests.cli.run import answer
from tests.firmware.projects import needs_board, needs_host
from tests.firmware.small import build as build_command
from tests.firmware.small import counting
from tvm_serenity.boards import board
from tvm_serenity.errors import (
    CheckError,
    FitError,
    InputError,
    SerenityError,
    WrongResultError,
)
from tvm_serenity.firmware.board import image
from tvm_serenity.firmware.board.latency import latency
from tvm_serenity.firmware.building import build
from tvm_serenity.firmware.check.transfers import check_program
from tvm_serenity.firmware.check.verify import run_host, run_qemu
from tvm_serenity.firmware.check.verify_report import report
from tvm_serenity.firmware.compile import streamed
from tvm_serenity.firmware.compile.driver import NetworkCompiler
from tvm_serenity.firmware.emit import transfers
from tvm_serenity.firmware.lifetimes import Lifetimes
from tvm_serenity.firmware.place.memory_map import fast_and_slow
from tvm_serenity.firmware.result import Project
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.offchip.transfers import Compute, Copy, Discard, transfer_plan

Patch = pytest.MonkeyPatch
# A fault takes what is patched, and patches it.
Fault = Callable[[Patch], None]
TIGHT = 1152
"""Fast memory of ``skips`` in which two tensors are evicted and read again."""


def skips() -> Any:
    """A quantised network with two long skips over a narrow middle."""
    from tvm_serenity.zoo.net import module
    from tvm_serenity.zoo.quantised import QuantisedNet
    from tvm_serenity.zoo.window import same

    def write(net: Any) -> Any:
        x = net.input("x", 3, 8)
        first = net.relu6(net.conv(x, 6, same(3)))
        second = net.relu6(net.conv(first, 6))
        y = net.relu6(net.conv(second, 8, same(3)))
        y = net.relu6(net.conv(y, 8, same(3)))
        y = net.relu6(net.conv(y, 6))
        return net.stored(net.conv(net.add(net.add(y, second), first), 4))

    return module(write, "NHWC", 1, QuantisedNet)


def made(monkeypatch: Patch, where: Path | None = None, **options: Any) -> Project:
    """Return the project of ``skips``, linked for its board only where it is written."""
    if where is None:
        monkeypatch.setattr(image, "linkable", lambda _family: False)
    settings: dict[str, Any] = {"fast_memory_bytes": TIGHT, "name": "net", "rows": "off"}
    settings |= {"output": where, **options}
    return build(skips(), settings.pop("board", "mps2-an386"), Settings(**settings))


def checked_and_run(project: Project, folder: Path) -> dict[str, Any]:
    """Run a project on this machine: bytes as planned; return what ``check`` says of its plan."""
    for name, data in project.files.items():
        (folder / name).write_bytes(data)
    written = Project(folder, project.metadata, project.reference)
    run = run_host(written, project.reference_inputs(), traced=False)
    assert run.transferred_bytes == project.facts["transfers"]["copied_bytes"]
    assert run.outputs == (project.reference["output0"].tobytes(),)
    found: dict[str, Any] = answer("check", folder / "net_graph.txt", folder / "net_transfers.json")
    return found


def run_in_qemu(project: Project, name: str) -> None:
    """Run a project in both memories of a board: bytes as planned, other bytes are noticed."""
    fast, slow = fast_and_slow(board(name))
    assert project.metadata["arena_bytes"].keys() == {fast.region.name, slow.region.name}
    found = report(project, inputs=1)
    assert (found["identical"], found["accepted"]) == (True, True)
    assert found["qemu"]["transferred_bytes"] == project.facts["transfers"]["copied_bytes"]
    wrong = Project(
        project.directory, {**project.metadata, "transferred_bytes": 1}, project.reference
    )
    assert not report(wrong, on_qemu=False)["accepted"]
    assert run_qemu(wrong, project.reference_inputs(), traced=False).transferred_bytes != 1


def assert_caught(
    monkeypatch: Patch,
    fault: tuple[Fault, type[SerenityError], str],
    build_again: Callable[[Patch], Project],
) -> None:
    """Seed a fault: the build raises the error, which says so."""
    seed, error, said = fault
    seed(monkeypatch)
    with pytest.raises(error) as raised:
        build_again(monkeypatch)
    assert said in str(raised.value)


@needs_host
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"in_place": True, "rewrite": "all"},
        {"external_arena": True, "order": "given", "constants": "ram"},
    ],
)
def test_executed_bytes_are_those_of_the_plan(
    options: dict[str, Any], monkeypatch: Patch, tmp_path: Path
) -> None:
    project = made(monkeypatch, **options)
    found = project.facts["transfers"]
    assert found["total_bytes"] > found["compulsory_bytes"]
    assert found["compulsory_bytes"] <= found["lower_bound_bytes"] <= found["total_bytes"]
    assert project.metadata["transferred_bytes"] == found["copied_bytes"]
    assert found["copied_bytes"] + found["direct_bytes"] == found["total_bytes"]
    assert min(found["copied_bytes"], found["direct_bytes"]) > 0
    checked = checked_and_run(project, tmp_path)
    (row,) = answer(
        *(
            "offchip",
            tmp_path / "net_graph.txt",
            "--block",
            "tensor",
            "--memory",
            "scratchpad",
            "--align",
            16,
        ),
        *("--orders", "given", "--capacities", TIGHT, "--policy", "direct"),
    )
    assert row["total_bytes"] == found["total_bytes"]
    assert checked["read_bytes"] + checked["write_bytes"] == found["total_bytes"]


@needs_host
@pytest.mark.parametrize("size", [1, 600, 4096])
def test_any_fast_memory_is_enough(size: int, monkeypatch: Patch) -> None:
    """Kernels access in slow memory what has no place, convolutions and depthwise ones too."""
    project = made(monkeypatch, fast_memory_bytes=size)
    found, checked = project.facts["transfers"], project.facts["check"]
    assert checked["tensors"] == len(project.metadata["steps"])
    copied = project.metadata["transferred_bytes"] or 0
    assert (copied, copied > 0) == (found["copied_bytes"], size > 1)
    assert (found["total_bytes"] > found["compulsory_bytes"]) == (size < 4096)
    assert found["direct_bytes"] > 0


@needs_host
def test_sums_in_the_bytes_of_another_tensor_are_copied(monkeypatch: Patch) -> None:
    """Rewriting sums into the bytes of a tensor, which is then evicted under its later name."""
    monkeypatch.setattr(image, "linkable", lambda _family: False)
    how = Settings(fast_memory_bytes=9000, name="net", rewrite="all", rows="off")
    project = build("zoo:darts-normal-cell?channels=16&size=8", "mps2-an386", how)
    found = project.facts["transfers"]
    assert project.metadata["transferred_bytes"] == found["copied_bytes"] > 0
    assert project.facts["check"]["tensors"] == len(project.metadata["steps"])


def test_accesses_in_slow_memory_are_those_of_the_plan() -> None:
    settings = Settings(fast_memory_bytes=600, name="net", check=False)
    found = NetworkCompiler(skips(), "net", board("mps2-an386"), settings).unsplit(settings)
    assert found.transfers is not None
    copied, touched = found.transfers.copied_bytes, found.transfers.touched_bytes
    check_program(found.program, copied, touched)
    with pytest.raises(CheckError, match="in slow memory, those of the plan"):
        check_program(found.program, copied, touched - 1)


def read_output() -> Any:
    """A float network that returns what it also reads, and a view of its last tensor."""
    from tvm import relax

    builder = relax.BlockBuilder()
    x, y = (relax.Var(name, relax.TensorType((1, 8), "float32")) for name in "xy")
    with builder.function("main", [x, y]):
        with builder.dataflow():
            total = builder.emit_output(relax.op.add(x, y))
            product = builder.emit(relax.op.multiply(total, x))
            shown = builder.emit_output(relax.op.reshape(product, (2, 4)))
        builder.emit_func_output(relax.Tuple([shown, total]))
    return builder.get()


@needs_host
@pytest.mark.parametrize(("network", "total"), [(counting, 128), (read_output, 128)])
def test_states_views_and_outputs_that_are_read(
    network: Callable[[], Any], total: int, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(image, "linkable", lambda _family: False)
    project = build(network(), "mps2-an386", Settings(fast_memory_bytes=96, name="net"))
    found = project.facts["transfers"]
    assert (found["total_bytes"], found["compulsory_bytes"]) == (total, total)
    assert project.facts["check"]["tensors"] == 2


@needs_board
@pytest.mark.parametrize("name", [only_exhaustive("mps2-an386"), "mps3-an547"])
def test_both_memories_of_a_board_in_qemu(name: str, monkeypatch: Patch, tmp_path: Path) -> None:
    project = made(monkeypatch, tmp_path / "made", board=name, fast_memory_bytes=1216)
    run_in_qemu(project, name)
    fast, slow = fast_and_slow(board(name))
    elf = (project.folder / "build" / "firmware.map").read_text()
    placed = [line.split() for line in elf.splitlines() if line.startswith(".arena_")]
    starts = {words[0]: int(words[1], 16) for words in placed if len(words) > 2}
    for one in (fast.region, slow.region):
        assert one.address <= starts[f".arena_{one.name}"] < one.address + one.size_bytes


@needs_board
def test_transfers_have_a_row_of_the_latency(monkeypatch: Patch, tmp_path: Path) -> None:
    pytest.importorskip("unicorn")
    options = {"board": "nucleo-h743zi", "fast_memory_bytes": 1216, "check": False}
    project = made(monkeypatch, tmp_path / "made", **options)
    *operators, copies = latency(project).operators
    model = project.files["net_model.c"].decode()
    assert (copies.name, copies.calls) == ("transfers", model.count(" net_start("))
    assert copies.cycles[0] > 0
    assert len(operators) == len(project.metadata["steps"])


def in_port(method: str, change: Callable[[list[str]], list[str]]) -> Fault:
    """Return the fault that changes the lines of a method of the port, in C alone."""

    def seed(monkeypatch: Patch) -> None:
        right = getattr(transfers.Port, method)
        monkeypatch.setattr(transfers.Port, method, lambda *given: change(right(*given)))

    return seed


def in_plan(change: Callable[[list[Any]], list[Any]]) -> Fault:
    """Return the fault that changes the steps of the plan."""

    def seed(monkeypatch: Patch) -> None:
        def wrong(*given: Any, **options: Any) -> Any:
            found = transfer_plan(*given, **options)
            object.__setattr__(found, "steps", tuple(change(list(found.steps))))
            return found

        monkeypatch.setattr(streamed, "transfer_plan", wrong)

    return seed


def in_program(monkeypatch: Patch) -> None:
    """Drop a transfer between the plan and the program."""
    right, seen = streamed._StreamedMaker.copied, list[int]()

    def wrong(maker: Any, source: int, target: int) -> None:
        seen.append(source)
        if len(seen) != 3:
            right(maker, source, target)

    monkeypatch.setattr(streamed._StreamedMaker, "copied", wrong)


def dies_early(monkeypatch: Patch) -> None:
    """End the lifetime of tensors one event early: their bytes are poisoned."""
    right = Lifetimes.of

    def wrong(*given: Any) -> Lifetimes:
        found = right(*given)
        return Lifetimes(found.first, {t: max(e - 1, 0) for t, e in found.last.items()})

    monkeypatch.setattr(Lifetimes, "of", wrong)


def without_a_store(steps: list[Any]) -> list[Any]:
    """Evict a live tensor without a store."""
    read = {s.tensor for s in steps if isinstance(s, Copy) and not s.is_store}
    read |= {one.tensor for s in steps if isinstance(s, Compute) for one in s.slow if one.reads}
    number = next(
        i for i, s in enumerate(steps) if isinstance(s, Copy) and s.is_store and s.tensor in read
    )
    assert isinstance(steps[number + 1], Discard)
    return steps[:number] + steps[number + 1 :]


def later(steps: list[Any]) -> list[Any]:
    """Load a tensor after its reader."""
    number = max(i for i, s in enumerate(steps) if isinstance(s, Copy) and not s.is_store)
    steps[number], steps[number + 1] = steps[number + 1], steps[number]
    return steps


def shorter(lines: list[str]) -> list[str]:
    """Copy one byte less."""
    return [line.replace("u);", "u - 1u);") if "_start(" in line else line for line in lines]


FAULTS: dict[str, tuple[Fault, type[SerenityError], str]] = {
    "dropped": (in_port("_copies", lambda _: []), WrongResultError, "0 bytes are copied"),
    "not waited for": (in_port("_waits", lambda _: []), WrongResultError, "is wrong"),
    "wrong size": (in_port("_copies", shorter), WrongResultError, "bytes are copied between"),
    "dead early": (dies_early, WrongResultError, "is wrong"),
    "dropped in the program": (in_program, CheckError, "its transfers copy"),
    "live tensor evicted": (in_plan(without_a_store), CheckError, "is not at"),
    "late": (in_plan(later), CheckError, "is not at"),
}


@needs_host
@pytest.mark.parametrize("name", FAULTS)
def test_build_catches_a_seeded_fault(name: str, monkeypatch: Patch) -> None:
    assert_caught(monkeypatch, FAULTS[name], made)


MAIN = """
#define SERENITY_LIFETIMES
#include "net_model.c"
#include "told.c"
#include <sanitizer/asan_interface.h>
#include <stdio.h>

void net_lifetime(void *data, uint32_t size, int begins)
{
    if (begins) {
        ASAN_UNPOISON_MEMORY_REGION(data, size);
    } else {
        ASAN_POISON_MEMORY_REGION(data, size);
    }
}

int main(void)
{
    ASAN_POISON_MEMORY_REGION(arena_sram, sizeof arena_sram);
    ASAN_POISON_MEMORY_REGION(arena_psram, sizeof arena_psram);
    ASAN_UNPOISON_MEMORY_REGION(net_input_x(), NET_INPUT_X_BYTES);
    if (fread(net_input_x(), 1, NET_INPUT_X_BYTES, stdin) != NET_INPUT_X_BYTES) {
        return 2;
    }
    const net_inputs inputs = {0};
    const net_outputs outputs = {0};
    if (net_run(&inputs, &outputs) != 0) {
        return 3;
    }
    return fwrite(net_output_output1(), 1, NET_OUTPUT_OUTPUT1_BYTES, stdout) == 0;
}
"""


def poisoned(project: Project, folder: Path, **changed: str) -> subprocess.CompletedProcess[bytes]:
    """Run a project under ASan, with all memory poisoned that holds nothing; return what it says.

    ``changed``: C files in place of the project's, or beside them, by name.
    """
    for name, data in project.files.items():
        (folder / name).write_bytes(data)
    for name, text in {"told": "", "own": MAIN, **changed}.items():
        (folder / f"{name}.c").write_text(text)
    sources = ("own.c", "net_kernels.c", "net_weights.c", "net_port.c")
    flags = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-O1", "-o", "own")
    subprocess.run(["cc", *flags, *sources, "-lm"], cwd=folder, check=True)
    given = project.reference["input0"].tobytes()
    return subprocess.run(
        [folder / "own"], input=given, capture_output=True, check=False, cwd=folder
    )


def assert_right(project: Project, done: subprocess.CompletedProcess[bytes]) -> None:
    """A run ended without an error, with the reference's output."""
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout == project.reference["output0"].tobytes()


@needs_host
def test_nothing_is_touched_outside_of_lifetimes(monkeypatch: Patch, tmp_path: Path) -> None:
    """ASan ends the process at the first byte that is touched before or after its tensor lives."""
    project = made(monkeypatch)
    model = project.files["net_model.c"].decode()
    begun = [line for line in model.splitlines() if line.startswith("    BEGINS(")]
    assert len(begun) > 10
    assert_right(project, poisoned(project, tmp_path))
    late = poisoned(project, tmp_path, net_model=model.replace(begun[3], "", 1))
    assert b"use-after-poison" in late.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"board": "microbit"}, "has no second, slower memory"),
        ({"fast_memory_bytes": 2**30}, "region 'sram' of mps2-an386 has"),
        ({"overlap": True}, "tensors are copied whole"),
        ({"rows": 1, "stream_input": True}, "its inputs are in the slower memory"),
        ({"rows": 1, "recompute": 1.1}, "tiles of columns are in one memory"),
        ({"format": "arduino"}, "its linker script places both memories"),
    ],
)
def test_refusals(options: dict[str, Any], said: str, monkeypatch: Patch) -> None:
    with pytest.raises(InputError) as raised:
        made(monkeypatch, **options)
    assert said in str(raised.value)


def test_what_does_not_fit_names_the_slower_memory(monkeypatch: Patch) -> None:
    monkeypatch.setattr(image, "linkable", lambda _family: False)
    known = board("mps2-an386")
    flash, sram, psram = known.regions
    small = replace(known, regions=(flash, replace(sram, size_bytes=2048), psram))
    settings = Settings(name="net", check=False, rows="off")
    with pytest.raises(FitError) as raised:
        build(skips(), small, settings)
    assert raised.value.facts["stream_from"] == "psram"
    streamed_settings = replace(settings, fast_memory_bytes=600)
    assert build(skips(), small, streamed_settings).facts["stream_from"] is None
    with pytest.raises(FitError) as raised:
        build(skips(), replace(small, regions=small.regions[:2]), settings)
    assert raised.value.facts["stream_from"] is None


def test_the_command_says_what_is_transferred(
    monkeypatch: Patch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("--fast-memory", str(TIGHT), "--rows", "off", "--no-check")
    assert build_command(monkeypatch, skips(), tmp_path, *asked) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "no order and no policy moves less than" in shown
    metadata = json.loads((tmp_path / "made" / "metadata.json").read_text())
    plan = json.loads((tmp_path / "made" / "net_transfers.json").read_text())
    total, in_place = plan["read_bytes"] + plan["write_bytes"], plan["direct_bytes"]
    assert f"{total:,} bytes between psram and sram" in shown
    assert f"{in_place:,} of them by operators in psram" in shown
    assert metadata["transferred_bytes"] == total - in_place
