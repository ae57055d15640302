"""The native core and its twin in Python do the same, step for step."""

import itertools
from dataclasses import astuple
from types import ModuleType

import pytest

from tests.cases import scaled
from tests.schedule.test_exact_cases import random_problem
from tvm_serenity.schedule import reference
from tvm_serenity.schedule.instance import (
    Instance,
    instance_of,
    peak_of_order,
    profile,
    profile_in_python,
    reverse,
    segment,
)
from tvm_serenity.schedule.least_cut import least_of_branches
from tvm_serenity.schedule.problem import peak_of
from tvm_serenity.schedule.starts import greedy_orders
from tvm_serenity.schedule.storages import StorageLives
from tvm_serenity.schedule.windows import lives_of, window

native = pytest.importorskip("tvm_serenity._schedule", reason="the native core is not built")

Rules = tuple[bool, bool, bool]


def cores(instance: Instance, rules: Rules) -> list[reference.Core]:
    def make(module: ModuleType) -> reference.Core:
        core: reference.Core = module.Core(
            instance.predecessors,
            instance.sizes,
            instance.producers,
            instance.consumers,
            instance.workspace,
            instance.in_place,
            instance.takeover,
            *rules,
        )
        return core

    return [make(native), make(reference)]


def compare(instance: Instance, rules: Rules) -> None:
    pair = cores(instance, rules)
    for op in range(instance.count):
        found = {str(tuple(core.root_cut(op))) for core in pair}
        assert found == {str(tuple(instance.walk.root_cut(op, 1e9)))}
    budget = 0
    while True:
        answers = [core.decide(budget, 10**6, 1e9, 10**9, None) for core in pair]
        assert tuple(answers[0]) == tuple(answers[1])
        capped = [tuple(core.decide(budget, 3, 1e9, 10**9, None)) for core in pair]
        assert capped[0] == capped[1]
        if answers[0][0] == "feasible":
            break
        budget = answers[0][2]
    for width in (1, 4):
        beams = [core.beam(budget, width, 1e9, None) for core in pair]
        assert beams[0] == beams[1]
        if beams[0]:
            assert profile(instance, beams[0]).peak <= budget


@pytest.mark.parametrize("rules", list(itertools.product((True, False), repeat=3)))
def test_small_instances_under_all_rules(rules: Rules) -> None:
    for seed in range(150):
        compare(instance_of(random_problem(seed, most=7))[0], rules)


def test_profiles_and_greedy_orders_are_the_twins_of_the_native_ones() -> None:
    for seed in range(60):
        instance, _ = instance_of(random_problem(seed, least=1, most=60, plain=seed % 2 == 0))
        native, twin = list(greedy_orders(instance)), list(greedy_orders(instance, native=False))
        assert native == twin
        assert len(native) == (3 if any(instance.in_place) else 5)
        for order in native:
            assert profile(instance, order) == profile_in_python(instance, order)
            assert peak_of_order(instance, order) == profile_in_python(instance, order).peak
        numbers = range(instance.count)
        relaxed, _ = window(instance, numbers, lives_of(instance, numbers), 0, instance.count)
        assert list(greedy_orders(relaxed)) == list(greedy_orders(relaxed, native=False))


def test_larger_segments_windows_and_reversed_instances() -> None:
    for seed in range(40):
        instance, _ = instance_of(random_problem(seed, least=30, most=80, plain=seed % 2 == 0))
        numbers = range(instance.count)
        compare(segment(instance, numbers, numbers, 5, 25)[0], (True, True, True))
        compare(
            window(instance, numbers, lives_of(instance, numbers), 8, 24)[0], (True, True, True)
        )
        if not any(instance.in_place):
            compare(reverse(segment(instance, numbers, numbers, 3, 20)[0]), (True, True, True))


def branchings_agree(instance: Instance, most: int) -> int:
    """Native and twin are asked alike, with pauses; the nodes that both take."""
    enough = profile(instance, range(instance.count)).peak
    pair = [core.branching(enough) for core in cores(instance, (True, True, True))]
    bounds = [0]
    lives = StorageLives(*astuple(instance))
    for nodes in (0, 1, most):
        found = [tuple(branching.run(nodes, 1e9, None)) for branching in pair]
        assert found[0] == found[1]
        bounds.append(found[0][0])
        branches = [branching.branches() for branching in pair]
        assert branches[0] == branches[1]
        assert least_of_branches(lives, branches[0], enough) >= found[0][0]
    assert bounds == sorted(bounds)
    assert bounds[-1] <= enough
    return found[0][1]


def test_branching_is_the_twin_of_the_native_one() -> None:
    nodes = 0
    for seed in range(scaled(60, 200)):
        nodes += branchings_agree(instance_of(random_problem(seed, most=9))[0], 20)
    for seed in range(scaled(4, 12)):
        instance, _ = instance_of(random_problem(seed, least=30, most=40, plain=seed % 2 == 0))
        numbers = range(instance.count)
        relaxed, _ = window(instance, numbers, lives_of(instance, numbers), 4, instance.count - 4)
        nodes += branchings_agree(relaxed, 8)
    assert nodes > scaled(30, 100)


def test_wide_sets_use_the_run_time_width() -> None:
    for seed in range(3):
        problem = random_problem(seed, least=300, most=400, plain=True)
        instance, base = instance_of(problem)
        assert profile(instance, range(problem.count)).peak + base == peak_of(
            problem, range(problem.count)
        )
        pair = cores(instance, (True, True, True))
        budget = profile(instance, range(problem.count)).peak - 1
        answers = [tuple(core.decide(budget, 50, 1e9, 10**9, None)) for core in pair]
        assert answers[0] == answers[1]


def test_a_malformed_instance_is_refused() -> None:
    good = instance_of(random_problem(1, least=3, most=3))[0]
    for predecessors in (((1,), (), ()), ((), (5,), ())):
        with pytest.raises(ValueError, match="valid order"):
            native.Core(
                predecessors,
                good.sizes,
                good.producers,
                good.consumers,
                good.workspace,
                good.in_place,
                good.takeover,
                True,
                True,
                True,
            )
