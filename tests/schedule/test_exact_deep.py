"""The steps for hard and large instances, forced onto instances that brute force can solve."""

import random
from typing import Any

import pytest

from tests.cases import cases
from tests.random_graphs import windowed_graph
from tests.schedule.test_exact_cases import brute_force, is_valid, random_problem
from tests.schedule.test_traps import climb, core_of
from tvm_serenity.schedule import climb as climbing
from tvm_serenity.schedule import improve, probe, reference_branching, schedule, solve
from tvm_serenity.schedule.exact import RULES, exact
from tvm_serenity.schedule.instance import instance_of
from tvm_serenity.schedule.problem import peak_of
from tvm_serenity.schedule.result import Options
from tvm_serenity.schedule.windows import lives_of, window
from tvm_serenity.search.outcome import Outcome


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every probe is hard at first, every part is one of many ops."""
    monkeypatch.setattr(solve, "FIRST_STATES", 1)
    monkeypatch.setattr(solve, "GROWTH", 2)
    monkeypatch.setattr(solve, "MANY_OPS", 4)
    monkeypatch.setattr(solve, "WINDOW_STATES", 4)
    monkeypatch.setattr(solve, "BEAM_WIDTH", 2)
    monkeypatch.setattr(solve, "SEGMENT_STATES", 2)
    monkeypatch.setattr(improve, "WINDOW_OPS", (2, 3, 4, 5, 6, 7))
    monkeypatch.setattr(improve, "SEGMENT_OPS", (2, 3, 5))
    monkeypatch.setattr(climbing, "CLIMB_OPS", (2, 3, 4, 5, 6, 7))
    monkeypatch.setattr(climbing, "BRANCH_OPS", (5, 7, 9, 12))
    monkeypatch.setattr(climbing, "FIRST_NODES", 1)


def run(seed: int, least: int, most: int, names: frozenset[str]) -> str:
    rng = random.Random(seed)
    problem = random_problem(seed, least=least, most=most)
    rules = {name: rng.random() < 0.7 for name in RULES if name not in {"native", "visited"}}
    rules |= dict.fromkeys(names, True)
    native, python = (exact(problem, Options(rules={**rules, "native": n})) for n in (True, False))
    assert (native.order, native.states) == (python.order, python.states), seed
    assert native.statistics["proof"] == python.statistics["proof"], seed
    assert is_valid(problem, native.order)
    assert peak_of(problem, native.order) == native.peak_bytes
    if most < 10:
        optimum = brute_force(problem)
    else:
        instance, base = instance_of(problem)
        optimum = base + climb(core_of(instance))
    assert native.lower_bound_bytes <= optimum <= native.peak_bytes, seed
    if native.outcome is Outcome.OPTIMAL:
        assert native.peak_bytes == optimum
    assert isinstance(native.statistics["proof"], dict)
    return str(native.statistics["proof"]["kind"])


@pytest.mark.parametrize("block", range(4))
@pytest.mark.usefixtures("impatient")
def test_hard_probes(block: int) -> None:
    every = frozenset({"reverse", "beam", "segments", "windows"})
    for seed in cases(150, start=150 * block):
        run(seed, 5, 9, every if seed % 2 else frozenset())


@pytest.fixture
def large(impatient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of nine ops are too large for probes."""
    for module in (improve, probe, solve):
        monkeypatch.setattr(module, "DENSE_OPS", 8)


@pytest.mark.usefixtures("large")
def test_parts_that_are_too_large_for_probes() -> None:
    kinds = {run(seed, 9, 20, frozenset({"windows", "segments"})) for seed in cases(40, most=100)}
    assert {"window", "root-cut"} <= kinds


@pytest.mark.usefixtures("large")
def test_what_is_asked_does_not_depend_on_the_number_of_cores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = windowed_graph(random.Random(3), 120, 12)
    found = []
    for cores in (1, 2, 5):
        monkeypatch.setattr("joblib.cpu_count", lambda cores=cores: cores)
        found.append(schedule(graph, "exact"))
    assert len({(f.order, f.lower_bound_bytes, f.states) for f in found}) == 1
    assert len({str(f.statistics["proof"]) for f in found}) == 1


@pytest.mark.usefixtures("large")
def test_a_climb_that_takes_no_answer_for_a_proof_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer = climbing.Climb.ask

    def guess(*arguments: Any) -> tuple[str, int]:
        status, value = answer(*arguments)
        return ("infeasible", arguments[2] + 1) if status == "hard" else (status, value)

    monkeypatch.setattr(climbing.Climb, "ask", guess)
    assert not all(_holds(seed) for seed in range(100))


def test_no_branching_is_above_the_optimum() -> None:
    raised = []
    for seed in cases(100):
        instance, _ = instance_of(random_problem(seed, least=12, most=40, plain=seed % 2 == 0))
        if instance.count > 20:
            steps = range(instance.count)
            instance, _ = window(instance, steps, lives_of(instance, steps), 3, 23)
        optimum = climb(core_of(instance))
        core = probe.core_of(instance, dict.fromkeys(RULES, True))
        branching = core.branching(2 * optimum)  # so that ways above the optimum stay open
        first, last = (branching.run(nodes, 1e9, None)[0] for nodes in (0, 30))
        assert first <= last <= optimum, seed
        raised.append(last > first)
    assert sum(raised) > len(raised) / 10


@pytest.mark.usefixtures("large")
def test_branching_into_one_way_only_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    add = reference_branching.Branching._add

    def second_only(self: Any, need: tuple[int, int], pairs: Any) -> None:
        one = pairs and pairs[-1][0] < pairs[-1][1]
        add(self, (self.enough, need[1]) if one else need, pairs)

    monkeypatch.setattr(reference_branching.Branching, "_add", second_only)
    monkeypatch.setattr(probe, "native_core", lambda: None)
    assert not all(_holds(seed) for seed in range(100))


def _holds(seed: int) -> bool:
    try:
        run(seed, 9, 20, frozenset({"windows"}))
    except AssertionError:
        return False
    return True
