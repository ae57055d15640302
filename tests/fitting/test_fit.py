"""``serenity fit``: figures are those of the builds they stand for, the choice is the best."""

import json
from dataclasses import replace
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

pytest.importorskip("tvm")

from tests.conformance.writer import T
from tests.firmware.projects import AD, model
from tests.firmware.test_overlap import module as written_over
from tests.firmware.test_workspace_growth import module as wide
from tests.quantize.test_operators import IMAGE, conv, weights
from tests.rows.nets import needs_board, random_module
from tvm_serenity import firmware
from tvm_serenity.boards import board
from tvm_serenity.cli import app
from tvm_serenity.cli.commands import register
from tvm_serenity.cycles.emulate import installed
from tvm_serenity.errors import InputError
from tvm_serenity.firmware import Settings
from tvm_serenity.firmware.check.verify import difference, run_host
from tvm_serenity.firmware.compile.driver import NetworkCompiler
from tvm_serenity.firmware.result import load
from tvm_serenity.fitting import FitGoal, Fitted, build_chosen, fitted
from tvm_serenity.fitting.candidates import unsplit
from tvm_serenity.fitting.choose import best_of, front_of
from tvm_serenity.fitting.measure import BuildFigures, Spending
from tvm_serenity.fitting.search import AT_ONCE, _Search
from tvm_serenity.rows.split import heights_of

register()

BOARD = "mps2-an386"
SEED = 5


@pytest.fixture(scope="module")
def module() -> Any:
    return random_module(SEED, True)


@pytest.fixture(scope="module")
def found(module: Any) -> Fitted:
    return fitted(module, BOARD, FitGoal(minimise="ram", stream_input="either", time_limit_s=120))


@needs_board
def test_figures_are_those_of_the_builds_they_stand_for(module: Any, found: Fitted) -> None:
    assert found.complete
    assert len(found.points) >= 3
    for one in found.points:
        how = one.candidate.settings
        if how.rows != "off":
            heights = one.candidate.made.chosen.best.banded.heights  # type: ignore[union-attr]
            network = one.candidate.made.chosen.best.banded.network  # type: ignore[union-attr]
            equal = [n for n in (8, 4, 2, 1) if heights_of(network, n) == heights]
            if not equal:
                continue
            how = replace(how, rows=equal[0])
        project = firmware.build(module, BOARD, replace(how, check=False))
        flash, *memories = project.facts["regions"]
        assert one.flash_bytes == flash["need_bytes"]
        assert one.ram_bytes == sum(line["need_bytes"] for line in memories)
        assert one.arena_bytes == sum(project.facts["arena_bytes"].values())


@needs_board
def test_memory_is_spent_on_time_where_time_is_what_counts() -> None:
    net = wide()
    fast = fitted(net, BOARD, FitGoal(minimise="time", time_limit_s=60)).chosen
    small = fitted(net, BOARD, FitGoal(minimise="ram", time_limit_s=60)).chosen
    assert fast is not None
    assert small is not None
    assert fast.candidate.settings.grows
    assert not fast.candidate.made.program.copied  # QEMU counts instructions: RAM wins nothing
    assert fast.arena_bytes > small.arena_bytes
    assert not small.candidate.settings.grows


@pytest.mark.skipif(not installed(), reason="needs the extra firmware")
def test_constants_are_in_ram_where_flash_is_slow() -> None:
    found = fitted(wide(), "nucleo-l4r5zi", FitGoal(minimise="time", time_limit_s=60))
    assert found.chosen is not None
    program = found.chosen.candidate.made.program
    assert program.copied
    plain = next(one for one in found.points if one.candidate.strategy == "unsplit")
    assert found.chosen.ram_bytes >= plain.ram_bytes + program.constant_bytes
    assert found.chosen.run.milliseconds[1] < plain.run.milliseconds[0]  # type: ignore[union-attr, index]


def test_every_way_to_build_whole_is_a_candidate() -> None:
    """The least of them is what the same options build."""
    maker = NetworkCompiler(written_over(), "net", board(BOARD), Settings())
    arenas = {one.strategy: one.arena_bytes for one in unsplit(maker)}
    assert {"unsplit", "unsplit, in place", "unsplit, in place, overlap"} <= set(arenas)
    asked = Settings(in_place=True, overlap=True, name="net", rows="off", check=False)
    built = firmware.build(written_over(), BOARD, asked)
    least = min(arenas.values())
    assert sum(built.facts["arena_bytes"].values()) == least < arenas["unsplit"]


@needs_board
def test_what_is_chosen_is_written_and_computes_the_same(found: Fitted, tmp_path: Path) -> None:
    folder = tmp_path / "chosen"
    project = build_chosen(found, Settings(output=str(folder)))
    assert found.chosen is not None
    assert sum(project.facts["arena_bytes"].values()) == found.chosen.arena_bytes
    written = load(folder)
    ran = run_host(written, written.reference_inputs(), traced=True)
    assert difference(written, ran.trace).identical


@needs_board
def test_every_run_was_counted_and_rows_cost_few_instructions(found: Fitted) -> None:
    runs = {one.strategy: one.run for one in found.points}
    whole = runs["unsplit"]
    assert whole is not None
    for run in runs.values():
        assert run is not None
        assert run.unit == "instructions"
        assert run.middle < 2 * whole.middle


figures = st.tuples(
    st.integers(1, 4), st.integers(1, 4), st.none() | st.integers(1, 4), st.booleans()
)


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.lists(figures, min_size=1, max_size=7))
def test_front_and_choice_are_those_of_brute_force(drawn: list[Any]) -> None:
    points = [_point(*one) for one in drawn]
    front = front_of(points)
    for one in points:
        beaten = any(_beats(other, one) for other in points)
        same = [other for other in front if _known(other) == _known(one)]
        assert len(same) == (0 if beaten else 1)
    for objective, index in (("ram", 0), ("flash", 1), ("time", 2)):
        chosen = best_of(points, FitGoal(minimise=objective, ram_bytes=3))
        allowed = [one for one in points if one.fits and one.ram_bytes <= 3]
        assert (chosen is None) == (not allowed)
        if chosen is not None:
            assert chosen in allowed
            assert _known(chosen)[index] == min(_known(one)[index] for one in allowed)


class Told(_Search):
    """A search whose builds are told instead of linked."""

    def measure(self, points: list[BuildFigures], folder: Path) -> None:
        points[:] = [replace(one.candidate.truth, linked=True) for one in points]  # type: ignore[attr-defined]


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.lists(figures, min_size=1, max_size=9), st.integers(1, 4))
def test_the_least_ram_is_that_of_all_builds_of_which_few_are_linked(
    drawn: list[Any], flash: int
) -> None:
    truths = [_point(*one) for one in drawn]
    points = []
    for one in truths:
        one.candidate.truth = one  # type: ignore[attr-defined]
        points.append(replace(one, flash_bytes=0, run=None, linked=False))
    goal = FitGoal(minimise="ram", flash_bytes=flash)
    with TemporaryDirectory() as folder:
        Told(cast(NetworkCompiler, None), goal, inf).least(points, Path(folder))
    want, found = (best_of(some, goal) for some in (truths, points))
    assert (want is None) == (found is None)
    if want is not None and found is not None:
        assert _known(found) == _known(want)
        larger = [one for one in truths if one.ram_bytes > want.ram_bytes]
        others = len(truths) - len(larger)
        assert len(points) <= others + AT_ONCE - 1, "two alternatives"
    assert all(one.linked for one in points)


def _point(ram: int, flash: int, run: int | None, fits: bool) -> BuildFigures:
    class Stub:
        calls = 1

    return BuildFigures(
        candidate=Stub(),  # type: ignore[arg-type]
        taken=None,  # type: ignore[arg-type]
        fits=fits,
        linked=True,
        flash_bytes=flash,
        ram_bytes=ram,
        run=None if run is None else Spending(run, run, "instructions"),
    )


def _known(one: BuildFigures) -> tuple[float, ...]:
    run = float("inf") if one.run is None else one.run.middle
    return one.ram_bytes, one.flash_bytes, run, not one.fits


def _beats(a: BuildFigures, b: BuildFigures) -> bool:
    pairs = list(zip(_known(a), _known(b), strict=True))
    return all(x <= y for x, y in pairs) and any(x < y for x, y in pairs)


def test_a_limit_ends_the_search_with_what_there_is(module: Any) -> None:
    found = fitted(module, BOARD, FitGoal(time_limit_s=0.01))
    assert not found.complete
    assert found.chosen is not None
    assert found.lower_bound_bytes == 0


@needs_board
def test_milliseconds_are_those_of_latency(module: Any, tmp_path: Path) -> None:
    if not installed():
        pytest.skip("unicorn, capstone or the native driver is not installed")
    from tvm_serenity.firmware.board.latency import latency

    target = board("nucleo-l4r5zi")
    found = fitted(module, target, FitGoal(time_limit_s=120, deadline_ms=1e6))
    assert found.chosen is not None
    assert found.chosen.run is not None
    project = build_chosen(found, Settings(output=str(tmp_path / "m"), check=False))
    again = latency(project, target)
    run = found.chosen.run
    # The inputs differ, and with them some branches.
    assert run.least == pytest.approx(again.cycles[0], rel=0.02)
    assert not FitGoal(deadline_ms=1e-6).met(found.chosen)


def test_nothing_that_fits_is_said(tmp_path: Path) -> None:
    file = tmp_path / "conv.tflite"
    small = T((8, 3, 3, 4), "int8", 0.08, data=weights(8, 3, 3, 4) // 64)
    file.write_bytes(conv(IMAGE, small, T((1, 7, 6, 8), "int8", 0.02, -5)))
    run = CliRunner().invoke(app, ["fit", str(file), "--ram", "1", "--json"])
    assert run.exit_code == 1, run.output
    said = json.loads(run.stdout)
    assert said["chosen"] is None
    assert not any(one["within_limits"] for one in said["builds"])
    run = CliRunner().invoke(app, ["fit", str(file), "--ram", "1"])
    assert run.exit_code == 1, run.output
    assert "no build fits" in run.stdout


def test_no_other_way_is_tried_where_the_constants_are_more_than_the_flash() -> None:
    found = fitted(str(model(AD)), "stm32vldiscovery", FitGoal(time_limit_s=120))
    assert [(one.strategy, one.fits, one.linked) for one in found.points] == [
        ("unsplit", False, False),
        ("unsplit, coded weights", False, False),  # no other way has fewer constants
    ]
    assert found.complete
    assert found.chosen is None
    assert found.lower_bound_bytes == 0  # one of this way alone is none of the others


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        ({"minimise": "beauty"}, "--minimise 'beauty': there are time, ram, flash, energy"),
        ({"stream_input": "maybe"}, "--stream-input 'maybe': there are no, yes, either"),
        ({"time_limit_s": 0}, "--time-limit 0: write a number of seconds above 0"),
        ({"jobs": 0}, "--jobs 0: write a number from 1 on"),
    ],
)
def test_goals_are_refused_by_name(goal: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as raised:
        FitGoal(**goal)
    assert str(raised.value) == words


def test_what_the_search_decides_is_not_given(module: Any) -> None:
    for asked in (Settings(in_place=True), Settings(overlap=True)):
        with pytest.raises(InputError, match="=True: fit chooses it"):
            fitted(module, BOARD, settings=asked)
    with pytest.raises(InputError, match="--deadline: mps2-an386 has no"):
        fitted(module, BOARD, FitGoal(deadline_ms=1))
