"""Firmware in bands of rows in two memories: bytes as planned, every seeded fault caught."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cases import only_exhaustive
from tests.firmware.projects import needs_board, needs_host
from tests.firmware.test_transfers import (
    Fault,
    assert_caught,
    assert_right,
    checked_and_run,
    poisoned,
    run_in_qemu,
)
from tests.firmware.test_transfers import made as project_of
from tvm_serenity.errors import CheckError, FitError, SerenityError, WrongResultError
from tvm_serenity.firmware.board import image
from tvm_serenity.firmware.board.latency import latency
from tvm_serenity.firmware.building import build
from tvm_serenity.firmware.compile import streamed_rows
from tvm_serenity.firmware.emit import transfers, trial
from tvm_serenity.firmware.emit.transfers import told_of_rows
from tvm_serenity.firmware.lifetimes import Hold, holds
from tvm_serenity.firmware.place import bands
from tvm_serenity.firmware.place.bands import PlacedBands
from tvm_serenity.firmware.program import Place, Program
from tvm_serenity.firmware.result import Project
from tvm_serenity.firmware.select import memories
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.offchip.transfers import Compute, TransferPlan
from tvm_serenity.plan import plan
from tvm_serenity.rows.transfers import plan_of_rows

Patch = pytest.MonkeyPatch
TIGHT = 300
"""Fast memory of ``skips`` in which both skips are stored and fetched again."""


def made(monkeypatch: Patch, where: Path | None = None, **options: Any) -> Project:
    """Return ``skips`` by rows, linked for its board only where it is written."""
    return project_of(monkeypatch, where, **{"fast_memory_bytes": TIGHT, "rows": 1, **options})


@needs_host
@pytest.mark.parametrize("size", [100, TIGHT, 2000])
def test_executed_bytes_are_those_of_the_plan(size: int, monkeypatch: Patch) -> None:
    """With 100 bytes convolutions read slow memory in place; with 2000 nothing else is stored."""
    project = made(monkeypatch, fast_memory_bytes=size)
    found = project.facts["transfers"]
    assert project.metadata["transferred_bytes"] == found["copied_bytes"] > 0
    assert found["copied_bytes"] + found["direct_bytes"] == found["total_bytes"]
    assert found["compulsory_bytes"] <= found["lower_bound_bytes"] <= found["total_bytes"]
    assert (found["lower_bound_bytes"] > found["compulsory_bytes"]) == (size == 100)
    assert (found["total_bytes"] > found["compulsory_bytes"]) == (size < 2000)
    assert project.metadata["arena_bytes"]["sram"] <= size
    assert project.facts["check"]["tensors"] == len(project.metadata["steps"])


@needs_host
def test_a_build_writes_a_certificate_that_check_replays(
    monkeypatch: Patch, tmp_path: Path
) -> None:
    project = made(monkeypatch, external_arena=True, rows=2)
    found = project.facts["transfers"]
    checked = checked_and_run(project, tmp_path)
    assert checked["read_bytes"] + checked["write_bytes"] == found["total_bytes"]
    assert checked["direct_bytes"] == found["direct_bytes"]


@needs_host
@pytest.mark.parametrize("rows", [1, 3])
def test_nothing_is_touched_outside_of_lifetimes(
    rows: int, monkeypatch: Patch, tmp_path: Path
) -> None:
    """ASan ends the process at the first byte that is touched before or after it holds rows."""
    told = list[str]()

    def seen(program: Program) -> str:
        told.append(told_of_rows(program))
        return told[-1]

    monkeypatch.setattr(trial, "told_of_rows", seen)
    project = made(monkeypatch, rows=rows, fast_memory_bytes=TIGHT * rows)
    begun = [line for line in told[0].splitlines() if re.match(r" +{\d+u, 1u, .*arena_sram", line)]
    assert len(begun) > 10
    assert_right(project, poisoned(project, tmp_path, told=told[0]))
    late = poisoned(project, tmp_path, told=told[0].replace(begun[3], "", 1))
    assert b"use-after-poison" in late.stderr


@needs_board
@pytest.mark.parametrize("name", ["mps2-an386", only_exhaustive("mps3-an547")])
def test_both_memories_of_a_board_in_qemu(name: str, monkeypatch: Patch, tmp_path: Path) -> None:
    project = made(monkeypatch, tmp_path / "made", board=name)
    run_in_qemu(project, name)


@needs_board
def test_copies_have_a_row_of_the_latency(monkeypatch: Patch, tmp_path: Path) -> None:
    pytest.importorskip("unicorn")
    project = made(monkeypatch, tmp_path / "made", board="nucleo-h743zi", check=False)
    *operators, copies = latency(project).operators
    computing = [one for one in project.metadata["operators"] if not one["copies"]]
    assert (copies.name, copies.calls > 0, copies.cycles[0] > 0) == ("transfers", True, True)
    assert len(operators) == len(computing) < len(project.metadata["operators"])


@needs_host
def test_build_takes_rows_where_they_move_less(monkeypatch: Patch) -> None:
    unsplit = made(monkeypatch, fast_memory_bytes=600, rows="off").facts
    assert unsplit["rows"] is None
    found = made(monkeypatch, fast_memory_bytes=600, rows="needed").facts
    assert found["rows"] is not None
    assert found["transfers"]["total_bytes"] < unsplit["transfers"]["total_bytes"]
    enough = made(monkeypatch, fast_memory_bytes=4096, rows="needed", check=False).facts
    assert enough["rows"] is None
    in_place = made(monkeypatch, fast_memory_bytes=600, rows="needed", in_place=True).facts
    assert in_place["rows"] is None


def network(seed: int) -> Any:
    """A quantised network of convolutions, pools, sums and a concatenation, drawn by ``seed``."""
    import random

    from tvm_serenity.zoo.net import module
    from tvm_serenity.zoo.quantised import QuantisedNet
    from tvm_serenity.zoo.window import same

    rng = random.Random(seed)

    def write(net: Any) -> Any:
        tensors = [net.input("x", 3, rng.choice([5, 8, 9]))]
        channels = rng.choice([4, 6])
        tensors.append(net.relu6(net.conv(tensors[0], channels, same(3))))
        for _ in range(5):
            near, far = tensors[-1], rng.choice(tensors[1:])
            if rng.random() < 0.4 and near is not far:
                tensors.append(net.add(near, far))
            else:
                window = rng.choice([same(3), same(1)])
                tensors.append(net.relu6(net.conv(far, channels, window)))
        return net.stored(net.conv(net.add(tensors[-1], tensors[1]), 4))

    return module(write, "NHWC", 1, QuantisedNet)


@needs_host
@pytest.mark.parametrize("seed", [0, *(only_exhaustive(seed) for seed in range(1, 24))])
def test_networks_that_are_drawn(seed: int, monkeypatch: Patch) -> None:
    monkeypatch.setattr(image, "linkable", lambda _family: False)
    before = None
    for size in (4000, 150 + 20 * seed):
        rows = 1 + seed % 3
        how = Settings(fast_memory_bytes=size, rows=rows, name="net")
        try:
            project = build(network(seed), "mps2-an386", how)
        except FitError:
            assert before is not None  # bands of several rows are too large
            continue
        found = project.facts["transfers"]
        assert project.metadata["transferred_bytes"] == found["copied_bytes"]
        assert project.facts["check"]["tensors"] == len(project.metadata["steps"])
        assert before is None or found["total_bytes"] >= before
        before = found["total_bytes"]


def in_places(change: Callable[[PlacedBands], PlacedBands]) -> Fault:
    """Return the fault that changes the places of bands and features in both memories."""

    def seed(monkeypatch: Patch) -> None:
        right = bands.in_two_memories
        monkeypatch.setattr(bands, "in_two_memories", lambda *given: change(right(*given)))

    return seed


def in_plan(change: Callable[[TransferPlan], TransferPlan]) -> Fault:
    """Return the fault that changes the plan of transfers."""

    def seed(monkeypatch: Patch) -> None:
        def wrong(*given: Any) -> TransferPlan:
            return change(plan_of_rows(*given))

        monkeypatch.setattr(streamed_rows, "plan_of_rows", wrong)

    return seed


def shorter(monkeypatch: Patch) -> None:
    """Copy one byte less of each row, in C alone."""
    right = memories._copying

    def wrong(name: str, row_bytes: int) -> Any:
        kernel = right(name, row_bytes)
        return replace(kernel, body=kernel.body.replace(f"{row_bytes}u", f"{row_bytes - 1}u"))

    monkeypatch.setattr(memories, "_copying", wrong)


def not_waited_for(monkeypatch: Patch) -> None:
    """Do not wait for copies."""
    right = memories._copying

    def wrong(name: str, row_bytes: int) -> Any:
        kernel = right(name, row_bytes)
        return replace(kernel, body=kernel.body.replace("    net_done();\n", ""))

    monkeypatch.setattr(memories, "_copying", wrong)


def evicted(monkeypatch: Patch) -> None:
    """Give all features in slow memory the same bytes: a live one is overwritten."""

    def wrong(buffers: Any) -> Any:
        return replace(plan(buffers), offsets=(0,) * len(buffers))

    monkeypatch.setattr(bands, "plan", wrong)


def in_other_memory(found: PlacedBands) -> PlacedBands:
    """Put the bands of fast memory in slow memory: the region is wrong."""
    (slow,), tensors = found.slow.arena_bytes, found.fast.tensors
    moved = {t: Place(slow, at.offset_bytes) for t, at in tensors.items()}
    return replace(found, fast=replace(found.fast, tensors=moved))


def dies_early(monkeypatch: Patch) -> None:
    """Say that rows are held one call less: their bytes are poisoned."""

    def wrong(program: Program) -> list[Hold]:
        found = holds(program)
        return [replace(one, last=one.last - (one.last > one.first)) for one in found]

    monkeypatch.setattr(transfers, "holds", wrong)


def without_a_call(whole: TransferPlan) -> TransferPlan:
    """Drop the fetch of one row."""
    number = next(i for i, step in enumerate(whole.steps) if getattr(step, "copies", False))
    return replace(whole, steps=whole.steps[:number] + whole.steps[number + 1 :])


def later(whole: TransferPlan) -> TransferPlan:
    """Fetch a row after its reader."""
    steps = list(whole.steps)
    number = next(i for i, step in enumerate(steps) if getattr(step, "copies", False))
    steps.append(steps.pop(number))
    return replace(whole, steps=tuple(steps))


def fewer(whole: TransferPlan) -> TransferPlan:
    """Say that operators access nothing in slow memory."""
    steps = (replace(s, slow=()) if isinstance(s, Compute) else s for s in whole.steps)
    return replace(whole, steps=tuple(steps))


FAULTS: dict[str, tuple[Fault, type[SerenityError], str]] = {
    "wrong size": (shorter, WrongResultError, "bytes are copied between"),
    "not waited for": (not_waited_for, WrongResultError, "is wrong"),
    "dead early": (dies_early, WrongResultError, "is wrong"),
    "live feature evicted": (evicted, CheckError, "is not at"),
    "wrong region": (in_places(in_other_memory), CheckError, "access"),
    "row dropped": (in_plan(without_a_call), CheckError, "an operator that it waits for"),
    "late": (in_plan(later), CheckError, "an operator that it waits for"),
    "not said": (in_plan(fewer), CheckError, "is not well formed"),
}


@needs_host
@pytest.mark.parametrize("name", FAULTS)
def test_build_catches_a_seeded_fault(name: str, monkeypatch: Patch) -> None:
    assert_caught(monkeypatch, FAULTS[name], made)


def test_the_certificate_names_what_is_wrong(monkeypatch: Patch, tmp_path: Path) -> None:
    project = made(monkeypatch, check=False)
    claims = json.loads(project.files["net_transfers.json"])
    graph = tmp_path / "graph.txt"
    graph.write_bytes(project.files["net_graph.txt"])
    first = next(step for step in claims["steps"] if step.get("copies"))
    changes: list[tuple[dict[str, Any], str]] = [
        ({"read_bytes": claims["read_bytes"] - 1}, "read_bytes is"),
        ({"direct_bytes": claims["direct_bytes"] + 1}, "direct_bytes is"),
        ({"capacity_bytes": claims["fast_bytes"] - 1}, "more than the capacity"),
    ]
    assert first["slow"]
    for change, said in changes:
        (tmp_path / "wrong.json").write_text(json.dumps(claims | change))
        with pytest.raises(CheckError, match=said):
            answer_of(graph, tmp_path / "wrong.json")
    name = next(iter(first["slow"]))
    first["slow"][name] = [2, 0]
    (tmp_path / "wrong.json").write_text(json.dumps(claims))
    with pytest.raises(CheckError, match="copies a tensor several times"):
        answer_of(graph, tmp_path / "wrong.json")


def answer_of(graph: Path, claims: Path) -> Any:
    """Return what ``check`` confirms."""
    from tvm_serenity.commands.check import check

    return check(str(graph), str(claims))
