"""Firmware for windows that move: 50 windows of a stream, each as the whole network computes it."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import cases, sampled, scaled, some
from tests.firmware.projects import KWS, model, needs_board, needs_host
from tests.firmware.test_states_in_place import cached
from tests.rows.nets import random_module
from tvm_serenity import firmware
from tvm_serenity.boards import board
from tvm_serenity.errors import CheckError, InputError, SerenityError, WrongResultError
from tvm_serenity.firmware.check.calls import check
from tvm_serenity.firmware.check.verify_report import report
from tvm_serenity.firmware.compile import sliding
from tvm_serenity.firmware.compile.driver import NetworkCompiler
from tvm_serenity.sliding.steady import WINDOWS

BOARD = "mps2-an386"
WAKE = "mlperf_tiny/sww_streaming_int8.tflite"
SPEECH = "tflm/micro_speech_quantized.tflite"


def compiled(module: Any, step: int) -> Any:
    return sliding.in_steps(
        NetworkCompiler(module, "net", board(BOARD), firmware.Settings(sliding=step, check=False))
    )


@needs_board
@pytest.mark.parametrize(
    ("name", "step", "share"),
    sampled(
        [(KWS, 2, 0.51), (KWS, 1, 0.55), (SPEECH, 2, 0.40), (SPEECH, 1, 0.40), (WAKE, 1, 0.15)], 2
    ),
)
def test_windows_are_those_of_the_whole_network(
    name: str, step: int, share: float, tmp_path: Path
) -> None:
    settings = firmware.Settings(name="net", sliding=step, output=tmp_path / "steps")
    project = firmware.build(str(model(name)), BOARD, settings)
    found = report(project)
    assert found["host"]["accepted"]
    assert found["qemu"]["accepted"]
    assert found["qemu"]["litert_max_abs_error"] == 0
    assert found["host"]["tensors"] == found["litert_tensors"] > WINDOWS
    outputs = project.reference["litert0"]
    assert len(outputs) == WINDOWS
    assert len({row.tobytes() for row in outputs}) > 1
    whole = firmware.Settings(name="net", output=tmp_path / "whole", check=False)
    plain = report(firmware.build(str(model(name)), BOARD, whole), on_host=False)
    assert found["instructions"] < share * plain["instructions"]


@needs_board
@pytest.mark.parametrize(
    ("name", "step"),
    sampled([("keyword_scrambled_8bit", 1), ("micro_speech_lstm", 49), ("mnist_lstm_int8", 28)], 2),
)
def test_networks_that_keep_states(name: str, step: int, tmp_path: Path) -> None:
    """States go on from step to step as LiteRT's do, inside the arena."""
    settings = firmware.Settings(name="net", sliding=step, output=tmp_path / "steps")
    project = firmware.build(str(model(f"tflm/{name}.tflite")), BOARD, settings)
    found = report(project)
    assert found["qemu"]["accepted"]
    assert found["qemu"]["litert_max_abs_error"] == 0
    assert len(project.reference["litert0"]) == WINDOWS
    assert "_next" not in (tmp_path / "steps" / "net_model.h").read_text()


@needs_host
@pytest.mark.parametrize("left_out", [0, 1])
def test_states_that_do_not_go_on_are_found(
    left_out: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seeded faults: states that are not filled before the first step, or stay as they were."""
    from tvm_serenity.firmware.emit import table, walker

    states = table.states

    def broken(program: Any) -> tuple[str, str]:
        begin, follow = states(program)
        return ("", follow) if left_out == 0 else (begin, "")

    monkeypatch.setattr(walker, "states", broken)
    name = str(cached(tmp_path / "net.tflite", dtype="int8"))
    with pytest.raises(WrongResultError):
        firmware.build(name, BOARD, firmware.Settings(name="net", sliding=1))


@needs_host
def test_less_is_kept_where_memory_is_short() -> None:
    """KWS keeps 26,090 bytes where it can, and 9,450 in 14 KiB."""
    settings = firmware.Settings(name="net", sliding=2, ram_bytes=14 * 1024)
    made = firmware.build(str(model(KWS)), BOARD, settings)
    assert made.facts["fits"]
    assert made.facts["sliding"]["kept_bytes"] == 9_450
    assert sum(made.facts["arena_bytes"].values()) == 12_588
    assert made.facts["check"]["tensors"] == 6_050


@needs_host
def test_networks_drawn_at_random() -> None:
    """Each build compares every row of every window, from two poison patterns on."""
    built = 0
    for seed in cases(12, most=100):
        for step in (1, 2, 3):
            settings = firmware.Settings(
                sliding=step, external_arena=bool(seed % 2), time_limit_s=0.5
            )
            try:
                made = firmware.build(random_module(seed, bool(seed % 3)), BOARD, settings)
            except InputError:
                continue  # nothing would stay
            assert made.facts["check"]["tensors"] >= WINDOWS
            built += 1
            break
        if built >= scaled(4, 40):
            return
    raise AssertionError(f"{built} networks alone")


@needs_host
@pytest.mark.parametrize(
    ("file", "right", "wrong", "step"),
    sampled(
        [
            ("move_up.h", "to + block->up", "to", 2),
            ("slide.h", "height - STEP + $T", "height - STEP", 2),
            ("move_up.h", "block->size);", "block->size / 2u);", 2),
            ("next_phase.h", "to + block->up, size", "to, size", 1),
            ("next_phase.h", "memcpy(store, moved, size)", "memcpy(store, next, size)", 1),
            ("next_phase.h", "memcpy(to, moved, size)", "memcpy(to, next, 1u)", 1),
            ("next_phase.h", "i += TURNED", "i += 2u * TURNED", 1),
        ],
        4,
    ),
)
def test_rows_that_move_wrongly_are_found(
    file: str, right: str, wrong: str, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tvm_serenity.firmware.emit import walker

    library = walker._library

    def broken(name: str, memory: dict[str, str]) -> str:
        path = Path(walker.__file__).parents[1] / "walker" / name
        if name != file:
            return library(name, memory)
        text = path.read_text(encoding="utf-8")
        assert text.count(right) == 1
        text = text.replace(right, wrong)
        for mark, stands_for in memory.items():
            text = text.replace(mark, stands_for)
        return text

    monkeypatch.setattr(walker, "_library", broken)
    with pytest.raises(WrongResultError):
        firmware.build(str(model(SPEECH)), BOARD, firmware.Settings(name="net", sliding=step))


def test_plans_that_lose_what_is_kept_are_found() -> None:
    """Seeded faults in a program: a block that is too short, one over another, a call left out."""
    from tvm_serenity.frontends.relax import to_relax

    program = compiled(to_relax(str(model(KWS))), 2).program
    check(program)
    kept = program.moving.kept
    longer = replace(kept[1], end=kept[1].end + 1)
    other = replace(kept[1], first=kept[1].first + 1)
    faults = [
        replace(program, moving=replace(program.moving, kept=(kept[0], longer, *kept[2:]))),
        replace(program, moving=replace(program.moving, kept=(kept[0], other, *kept[2:]))),
        replace(program, moving=replace(program.moving, kept=kept[1:])),
        replace(program, sequence=program.sequence[1:]),
    ]
    twice = compiled(to_relax(str(model(SPEECH))), 1).program
    check(twice)
    blocks = list(twice.moving.kept)
    (at,) = (i for i, rows in enumerate(blocks) if rows.stores)
    (offset,) = blocks[at].stores
    for stores in ((offset - 1,), (offset, offset), (0,)):
        blocks[at] = replace(blocks[at], stores=stores)
        faults.append(replace(twice, moving=replace(twice.moving, kept=tuple(blocks))))
    for fault in faults:
        with pytest.raises(CheckError):
            check(fault)


OTHERS: list[tuple[str, dict[str, Any]]] = [
    ("--rows 2", {"rows": 2}),
    ("--stream-input", {"stream_input": True}),
    ("--codegen llvm", {"codegen": "llvm"}),
    ("--in-place", {"in_place": True}),
    ("--overlap", {"overlap": True}),
    ("--order given", {"order": "given"}),
    ("--rewrite", {"rewrite": "all"}),
    ("--format mlf", {"format": "mlf"}),
    ("--constants ram", {"constants": "ram"}),
]


@pytest.mark.parametrize(("option", "given"), OTHERS)
def test_options_that_do_not_go_with_steps(option: str, given: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"--sliding 2 does not take {option}: "):
        firmware.Settings(sliding=2, **given)


@needs_host
def test_options_that_go_with_steps(tmp_path: Path) -> None:
    others: list[dict[str, Any]] = [
        {"channels": "keep"},
        {"external_arena": True},
        {"quantized": "off"},
        {"workspace": "grow"},
        {"check": False},
    ]
    for number, given in enumerate(some(others, 1)):
        settings = firmware.Settings(name="net", sliding=3, output=tmp_path / str(number), **given)
        made = firmware.build(str(model(WAKE)), BOARD, settings)
        assert made.metadata["moving"]["windows"] == WINDOWS
        assert made.facts["sliding"]["step"] == 3
    few = firmware.Settings(sliding=2, arena_limit_bytes=3_900, check=False)
    with pytest.raises(SerenityError, match="does not fit"):
        firmware.build(str(model(KWS)), BOARD, few)  # the input and a row of each layer are more


@needs_host
def test_rows_wanted(tmp_path: Path) -> None:
    """What ``feed_row`` returns, from the first row on and after ``restart``."""
    settings = firmware.Settings(name="net", sliding=2, output=tmp_path / "steps", check=False)
    firmware.build(str(model(SPEECH)), BOARD, settings)
    code = """
#include <stdio.h>
#include "net_model.h"
int main(void) {
    static int8_t row[NET_INPUT_RESHAPE_1_ROW_BYTES];
    for (int run = 0; run < 2; ++run) {
        for (int y = 0; y < 54; ++y) printf("%d ", (int)net_feed_row(row));
        net_restart();
    }
    return 0;
}
"""
    folder = tmp_path / "steps"
    header = (folder / "net_model.h").read_text()
    prefix = next(w for w in header.split() if w.endswith("_ROW_BYTES"))
    (folder / "wanted.c").write_text(code.replace("NET_INPUT_RESHAPE_1_ROW_BYTES", prefix))
    sources = ["wanted.c", "net_model.c", "net_kernels.c", "net_weights.c"]
    subprocess.run(["cc", "-o", "wanted", *sources], cwd=folder, check=True)
    said = subprocess.run(["./wanted"], cwd=folder, check=True, capture_output=True, text=True)
    once = [*range(49, -1, -1), 1, 0, 1, 0]
    assert [int(word) for word in said.stdout.split()] == [*once, *once]
    assert json.loads((folder / "metadata.json").read_text())["moving"]["steps_to_fill"] == 25
    assert np.load(folder / "reference.npz")["input0"].shape[0] == 2 * (25 + WINDOWS - 1)
