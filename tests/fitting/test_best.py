"""``serenity build`` takes the best build for a board: the fastest that fits, or the least."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

pytest.importorskip("tvm")

from tests.cli.run import answer, serenity
from tests.firmware.projects import KWS, VWW, model, needs_board
from tvm_serenity.boards import board
from tvm_serenity.commands.build import BuildOptions, build, pinned
from tvm_serenity.errors import FitError, InputError
from tvm_serenity.firmware import Settings
from tvm_serenity.firmware.board import latency
from tvm_serenity.firmware.compile.driver import NetworkCompiler
from tvm_serenity.firmware.compile.model import opened
from tvm_serenity.firmware.result import Project, load
from tvm_serenity.firmware.select.choices import NOT_WORTH
from tvm_serenity.fitting.fastest import fastest, reads_flash_slowly
from tvm_serenity.rows.limits import Limits

L4R5 = "nucleo-l4r5zi"
pytestmark = needs_board


def built(*words: object, where: Path) -> dict[str, Any]:
    return dict(answer("build", *words, "-o", where, "--no-check"))


def test_the_default_is_faster_than_what_the_options_say_and_is_pinned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KWS on the L4R5: its flash has wait states, and RAM has room for the weights."""
    best = built(model(KWS), "--board", "STM32L4R5", where=tmp_path / "best")
    search = best["search"]
    assert search["complete"]
    assert search["build"]["milliseconds"][1] < 0.9 * 43.4  # X-CUBE-AI 10.2
    monkeypatch.setattr(latency, "_estimated", None)  # the search has priced this image
    priced = latency.latency(load(tmp_path / "best"))
    assert [*priced.milliseconds] == search["build"]["milliseconds"]
    others = search["alternatives"]
    assert others
    assert all(search["build"]["milliseconds"][1] <= o["milliseconds"][1] for o in others)
    assert any(o["ram_bytes"] < search["build"]["ram_bytes"] for o in others)
    pinned = ("--minimise", "off", *search["options"], "-o", tmp_path / "pinned")
    done = serenity("build", model(KWS), "--board", L4R5, *pinned, "--no-check")
    assert done.returncode == 0, done.stderr
    for name in ("kws_dscnn_int8_model.c", "kws_dscnn_int8_kernels.c", "link.ld"):
        one, two = (tmp_path / folder / name for folder in ("best", "pinned"))
        assert one.read_bytes() == two.read_bytes()


def test_the_pinned_command_has_the_options_that_are_not_searched() -> None:
    options = BuildOptions(
        output="made here", name="net", format="zephyr", labels="words.txt", check=False, rows=2
    )
    found = SimpleNamespace(
        metadata={"board": L4R5}, facts={"search": {"options": ["--rows", "2"]}}
    )
    assert pinned(cast(Project, found), "m.tflite", options) == (
        f"serenity build m.tflite --board {L4R5} --minimise off --rows 2 --no-check "
        "--name net --labels words.txt --format zephyr -o 'made here'"
    )


@pytest.mark.parametrize(
    ("single", "goal", "said"),
    [
        ({"sliding": 2}, {"deadline_ms": 3.0}, "--deadline 3 does not take --sliding 2"),
        ({"fast_memory_bytes": 9}, {"minimise": "ram"}, "--minimise ram .* --fast-memory 9"),
        ({"codegen": "llvm"}, {"flash_bytes": 64}, "--flash 64 .* --codegen llvm"),
        ({"minimise": "off"}, {"flash_bytes": 64}, "--flash 64 .* --minimise off"),
    ],
)
def test_a_goal_without_a_search_is_refused(
    single: dict[str, Any], goal: dict[str, Any], said: str
) -> None:
    assert BuildOptions(**single).goal is None
    with pytest.raises(InputError, match=said):
        build(str(model(KWS)), "mps2-an386", BuildOptions(**single, **goal))


def test_the_flash_of_a_chip_is_no_goal() -> None:
    chip = BuildOptions(sliding=2, cpu="cortex-m4", ram_bytes=65_536, flash_bytes=65_536)
    assert chip.goal is None


def test_less_ram_is_taken_where_that_is_asked_for(tmp_path: Path) -> None:
    path, limit = model(KWS), ("--time-limit", "60", "--no-check")
    least = built(path, "--board", L4R5, "--minimise", "ram", *limit, where=tmp_path / "ram")
    fast = built(path, "--board", L4R5, "--ram", "24K", where=tmp_path / "limited")
    assert least["search"]["build"]["ram_bytes"] < fast["search"]["build"]["ram_bytes"] <= 24 * 1024
    assert least["search"]["minimise"] == "ram"


def test_an_option_forces_what_it_names(tmp_path: Path) -> None:
    options = BuildOptions(rows=2, output=tmp_path / "rows", check=False)
    found = build(str(model(KWS)), "mps2-an386", options)
    assert found.facts["search"]["build"]["strategy"].startswith("bands of 2 rows")
    assert found.facts["rows"]["rows"] == "2"
    exact = build(str(model(KWS)), "mps2-an386", BuildOptions(minimise="off", check=False))
    assert exact.facts["search"] is None


def test_bands_are_tried_where_nothing_else_fits(tmp_path: Path) -> None:
    found = built(model(VWW), "--board", "cortex-m4:32K:1M", where=tmp_path / "vww")
    assert found["rows"] is not None
    assert found["search"]["build"]["strategy"].startswith("bands of")


def test_a_deadline_that_no_build_keeps_is_said(tmp_path: Path) -> None:
    options = BuildOptions(deadline_ms=1.0, output=tmp_path / "none")
    with pytest.raises(FitError, match=r"exceeds the given limits: .* ms"):
        build(str(model(KWS)), L4R5, options)
    assert not (tmp_path / "none").exists()
    refused = serenity("build", model(KWS), "--board", "mps2-an386", "--deadline", 1, "-o", "x")
    assert refused.returncode == 2
    assert "--deadline: mps2-an386 has no [timing]" in refused.stderr


def test_flash_is_slow_where_the_board_says_so() -> None:
    assert reads_flash_slowly(board(L4R5))
    assert not reads_flash_slowly(board("mps2-an386"))


def test_a_kernel_not_worth_its_code_does_not_prolong_the_search() -> None:
    """VWW: a faster kernel for one layer has room for its workspace, but its code saves too little.

    No other way to place tensors takes it, so the search ends with both places of constants.
    """
    module = opened(str(model(VWW)), Settings()).module
    maker = NetworkCompiler(module, "vww", board(L4R5), Settings())
    found = list(fastest(maker, Limits()))
    assert [one.strategy for one in found] == [
        "unsplit, faster kernels, constants in RAM",
        "unsplit, faster kernels",
    ]
    candidates = [c for choice in found[0].made.choices for c in choice.candidates]
    (rejected,) = [c for c in candidates if c.reason == NOT_WORTH and c.workspace_bytes]
    assert sum(found[0].made.placed.arena_bytes.values()) > rejected.workspace_bytes
