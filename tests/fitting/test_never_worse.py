"""What fit chooses is at most what any plain command builds, however busy the machine is."""

import time
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import pytest

pytest.importorskip("tvm")

from tests.cases import sampled
from tests.firmware.projects import model
from tests.random_graphs import random_graph
from tests.rows.nets import needs_board, random_module
from tvm_serenity import firmware
from tvm_serenity.boards import board
from tvm_serenity.commands.rows import network_of
from tvm_serenity.errors import InputError, UnsupportedError
from tvm_serenity.firmware import Settings
from tvm_serenity.firmware.compile.driver import NetworkCompiler
from tvm_serenity.firmware.compile.model import opened
from tvm_serenity.fitting import FitGoal, Fitted, fitted
from tvm_serenity.graph import complete_order
from tvm_serenity.memory import live_ranges
from tvm_serenity.options.model import ReadOptions
from tvm_serenity.plan import Buffer, PlanOptions, check_plan, plan
from tvm_serenity.rows import Limits, heights_of, stream
from tvm_serenity.schedule import Options, check_schedule
from tvm_serenity.schedule.exact import exact
from tvm_serenity.schedule.problem import problem_of

BOARD = "mps2-an386"
PLAIN = (
    Settings(rows="off"),
    Settings(rows="off", in_place=True),
    Settings(rows="off", in_place=True, overlap=True),
    Settings(rows="off", rewrite="all"),
    *(Settings(rows=rows) for rows in (1, 2, 4)),
    *(Settings(rows=1, overlap=True, stream_input=arrives) for arrives in (False, True)),
    Settings(rows=1, stream_input=True),
)
SEEDS = (5, 11, 23)


@pytest.fixture(scope="module", params=sampled(SEEDS, 1))
def built(request: pytest.FixtureRequest) -> tuple[Any, list[tuple[Settings, int]]]:
    """A network, and the arena of each plain build of it."""
    module = random_module(request.param, True)
    arenas = [(how, _arena(module, how)) for how in PLAIN]
    return module, [(how, arena) for how, arena in arenas if arena is not None]


def _arena(module: Any, how: Settings) -> int | None:
    try:
        made = firmware.build(module, BOARD, replace(how, check=False))
    except (InputError, UnsupportedError):
        return None
    return int(sum(made.facts["arena_bytes"].values()))


def _least(found: Fitted) -> int:
    return min(one.arena_bytes for one in found.points)


@needs_board
def test_no_plain_build_needs_a_smaller_arena(
    built: tuple[Any, list[tuple[Settings, int]]],
) -> None:
    module, arenas = built
    memory = [arena for how, arena in arenas if not how.stream_input]
    assert len(memory) >= 4
    found = fitted(module, BOARD, FitGoal(minimise="ram"))
    assert found.complete
    assert found.chosen is not None
    assert found.chosen.arena_bytes <= min(memory)
    either = fitted(module, BOARD, FitGoal(minimise="ram", stream_input="either"))
    assert _least(either) <= min(arena for _, arena in arenas)
    whole = next(one for one in found.points if one.strategy == "unsplit")
    quickest = fitted(module, BOARD, FitGoal(minimise="time")).chosen
    assert quickest is not None
    assert quickest.run is not None
    assert whole.run is not None
    assert quickest.run.middle <= whole.run.middle


def test_vww_is_written_over_by_rows_with_the_usual_effort() -> None:
    """It was seen to end with rows apart, 28,032 bytes, where other programs ran."""
    file = str(model("mlperf_tiny/vww_mobilenetv1_96_int8.tflite"))
    module = opened(file, Settings()).module
    network = NetworkCompiler(module, "vww", board(BOARD), Settings()).rows(overlap=True).network
    found = stream(network, heights_of(network, 1))
    assert found.arena_bytes == found.lower_bound_bytes == 27_762


@pytest.mark.parametrize("streamed", [False, True])
def test_a_slow_machine_finds_the_same(streamed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    network = network_of(str(model("mlperf_tiny/ic_resnet8_int8.tflite")), ReadOptions(), True)
    limits, heights = Limits(effort=0.05), heights_of(network, 2)
    found = stream(network, heights, streamed=streamed, limits=limits)
    clock, real = iter(range(1 << 60)), time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: real() + 5.0 * next(clock))
    monkeypatch.setattr(time, "perf_counter", lambda: real() + 5.0 * next(clock))
    slow = stream(network, heights, streamed=streamed, limits=limits)
    assert slow.schedule.order == found.schedule.order
    assert slow.plan.offsets == found.plan.offsets
    cut = stream(network, heights, streamed=streamed, limits=Limits(1.0, effort=0.05))
    assert cut.schedule.states < slow.schedule.states  # there the clock does end it


@pytest.mark.parametrize("seed", range(6))
def test_steps_end_a_search_with_the_best_so_far(seed: int) -> None:
    graph = random_graph(Random(seed), 40)
    problem = problem_of(graph)
    peaks = []
    for steps in (0, 100, 5_000):
        found, again = (exact(problem, Options(steps=steps)) for _ in range(2))
        assert found.order == again.order
        assert found.states <= steps
        peaks.append(found.peak_bytes)
        order = complete_order(graph, [problem.ops[i] for i in found.order])
        check_schedule(graph, order, found.peak_bytes)
    assert all(more <= less for less, more in pairwise(peaks))


@pytest.mark.parametrize("seed", range(6))
def test_steps_end_a_placement_with_the_best_so_far(seed: int) -> None:
    ranges = live_ranges(random_graph(Random(seed), 60))
    buffers = [Buffer(r.name, r.start, r.stop, r.size_bytes) for r in ranges]
    arenas = []
    for steps in (0, 300, 30_000):
        options = PlanOptions(time_limit_s=None, steps=steps)
        found, again = (plan(buffers, options=options) for _ in range(2))
        assert found.offsets == again.offsets
        check_plan(found.buffers, found.offsets, found.arena_bytes)
        arenas.append(found.arena_bytes)
    assert all(more <= less for less, more in pairwise(arenas))
    with pytest.raises(InputError, match="steps must be 0 or more, got -1"):
        PlanOptions(steps=-1)
