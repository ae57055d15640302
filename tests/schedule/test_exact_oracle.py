"""The exact search against brute force, rules on and off, native against Python."""

import random

import pytest

from tests.cases import cases, sampled
from tests.schedule.test_exact_cases import brute_force, is_valid, random_problem
from tvm_serenity.errors import InputError
from tvm_serenity.schedule.exact import RULES, exact
from tvm_serenity.schedule.problem import Problem, peak_of
from tvm_serenity.schedule.result import Options, Schedule
from tvm_serenity.search.outcome import Outcome

CORES = (True, False)


def solve(problem: Problem, rules: dict[str, bool], budget: int | None = None) -> Schedule:
    found = exact(problem, Options(rules=rules, budget_bytes=budget))
    assert is_valid(problem, found.order)
    assert peak_of(problem, found.order) == found.peak_bytes
    assert found.peak_bytes <= peak_of(problem, range(problem.count))
    return found


def both_cores(problem: Problem, rules: dict[str, bool], budget: int | None = None) -> Schedule:
    native, python = (solve(problem, {**rules, "native": core}, budget) for core in CORES)
    assert native.order == python.order
    assert native.states == python.states
    assert {**native.statistics, "core": ""} == {**python.statistics, "core": ""}
    return native


def some_rules(rng: random.Random) -> dict[str, bool]:
    return {name: rng.random() < 0.5 for name in RULES if name != "native"}


@pytest.mark.parametrize("block", sampled(range(20), 12))
def test_optimal_and_equal_to_brute_force(block: int) -> None:
    for seed in cases(100, start=100 * block):
        rng = random.Random(seed)
        problem = random_problem(seed)
        least = brute_force(problem)
        for rules in ({}, some_rules(rng), some_rules(rng)):
            found = both_cores(problem, rules)
            assert found.outcome is Outcome.OPTIMAL, (seed, rules)
            assert found.peak_bytes == found.lower_bound_bytes == least, (seed, rules)


@pytest.mark.parametrize("name", RULES)
def test_every_rule_alone_and_every_rule_missing(name: str) -> None:
    for seed in range(60):
        problem = random_problem(seed, most=7)
        least = brute_force(problem)
        for alone in (True, False):
            rules = {other: (other == name) is alone for other in RULES}
            assert solve(problem, rules).peak_bytes == least, (seed, rules)


def test_a_budget_is_met_or_proved_impossible() -> None:
    for seed in range(300):
        rng = random.Random(seed)
        problem = random_problem(seed)
        least = brute_force(problem)
        budget = max(0, least + rng.randint(-3, 2))
        found = both_cores(problem, some_rules(rng), budget)
        if budget >= least:
            assert found.outcome is Outcome.OPTIMAL
            assert found.peak_bytes == least
        else:
            assert found.outcome is Outcome.INFEASIBLE
            assert budget < found.lower_bound_bytes <= least


@pytest.mark.parametrize("block", range(5))
def test_variants_agree_where_brute_force_cannot_reach(block: int) -> None:
    for seed in cases(40, start=40 * block):
        rng = random.Random(seed)
        problem = random_problem(seed, least=16, most=36)
        rules = some_rules(rng)
        if problem.count > 20:
            rules |= {"block-moves": True, "visited": True}
        if problem.count > 30:
            rules["commitment"] = True
        rules["visited"] = True
        assert both_cores(problem, {}).peak_bytes == solve(problem, rules).peak_bytes, seed


def test_start_orders_are_never_made_worse() -> None:
    for seed in range(50):
        problem = random_problem(seed, least=12, most=30)
        best = exact(problem)
        again = exact(problem, Options(time_limit_s=0.0), [best.order])
        assert again.peak_bytes == best.peak_bytes


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(
        InputError, match="unknown search rule 'magic'; choose among native, divide"
    ):
        exact(random_problem(0), Options(rules={"magic": True}))
