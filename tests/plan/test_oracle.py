"""The planners against CP-SAT and brute force on random small instances."""

import itertools
import random
from dataclasses import replace
from typing import Any

import pytest

from tests.cases import cases
from tvm_serenity.plan import (
    RULES,
    Buffer,
    Overlap,
    PlanOptions,
    Region,
    check_plan,
    check_regions,
    lower_bound,
    native,
    plan,
)
from tvm_serenity.plan.bound import problem_bound, section_bound
from tvm_serenity.plan.problem import prepare
from tvm_serenity.search.outcome import Outcome

cp_model = pytest.importorskip("ortools.sat.python.cp_model", reason="ortools is not installed")
needs_native = pytest.mark.skipif(not native.available(), reason="the native core is not built")


def random_buffers(dice: random.Random, kind: str, count: int | None = None) -> list[Buffer]:
    """Small instances of one kind: plain, aligned, fixed, overlap or mixed."""
    steps, buffers = dice.randint(2, 7), []
    for i in range(count or dice.randint(1, 9)):
        lower = dice.randrange(steps)
        upper = dice.randint(lower + (dice.random() > 0.05), steps)
        alignment = dice.choice([1, 1, 2, 3, 4, 8]) if kind in ("aligned", "mixed") else 1
        offset = None
        if kind in ("fixed", "mixed") and dice.random() < 0.25:
            offset = dice.randrange(0, 16) * alignment
        partner, overlap = None, Overlap.START
        if kind in ("overlap", "mixed") and i and dice.random() < 0.5:
            partner, overlap = f"b{dice.randrange(i)}", dice.choice(list(Overlap))
        if kind == "below" and i and dice.random() < 0.7:
            partner, overlap = f"b{dice.randrange(i)}", Overlap.BELOW
            if dice.random() < 0.4:
                alignment = dice.choice([2, 3, 4])
        size, distance = dice.randint(0, 9), dice.randint(1, 9)
        buffers.append(
            Buffer(
                f"b{i}",
                lower,
                upper,
                size,
                alignment,
                offset,
                partner,
                overlap,
                distance_bytes=distance,
            )
        )
    return _without_clashes(buffers)


def _without_clashes(buffers: list[Buffer]) -> list[Buffer]:
    kept: list[Buffer] = []
    for b in buffers:
        clash = b.offset is not None and any(
            other.offset is not None
            and b.lower < other.upper
            and other.lower < b.upper
            and b.offset < other.offset + other.size_bytes
            and other.offset < b.offset + b.size_bytes
            for other in kept
        )
        kept.append(replace(b, offset=None) if clash else b)
    return kept


def allowed(one: Buffer, two: Buffer) -> set[Overlap]:
    return {b.overlap for b, o in ((one, two), (two, one)) if b.may_overlap == o.name}


def rise(one: Buffer, two: Buffer) -> int:
    below = one.may_overlap == two.name and one.overlap is Overlap.BELOW
    return min(one.size_bytes, one.distance_bytes) if below else one.size_bytes


def model_arena(model, buffers: list[Buffer], horizon: int, present=None):  # type: ignore[no-untyped-def]
    """Offsets as variables and every pair apart, as the permissions allow."""
    offsets = []
    for i, b in enumerate(buffers):
        if b.offset is not None:
            offsets.append(model.new_constant(b.offset))
        else:
            unit = model.new_int_var(0, horizon // b.alignment, "")
            at = model.new_int_var(0, horizon, f"o{i}")
            model.add(at == unit * b.alignment)
            offsets.append(at)
    for (i, a), (j, b) in itertools.combinations(enumerate(buffers), 2):
        if not (a.costs and b.costs and a.lower < b.upper and b.lower < a.upper):
            continue
        kinds = allowed(a, b)
        if Overlap.ANY in kinds:
            continue
        below, above, same = (model.new_bool_var("") for _ in range(3))
        model.add(offsets[i] + rise(a, b) <= offsets[j]).only_enforce_if(below)
        model.add(offsets[j] + rise(b, a) <= offsets[i]).only_enforce_if(above)
        ways = [below, above]
        if Overlap.START in kinds:
            model.add(offsets[i] == offsets[j]).only_enforce_if(same)
            ways.append(same)
        if present is not None:
            ways += [present[i].negated(), present[j].negated()]
        model.add_bool_or(ways)
    return offsets


def oracle_arena(buffers: list[Buffer]) -> int:
    model = cp_model.CpModel()
    horizon = sum(b.size_bytes + b.alignment for b in buffers) + 200
    top = model.new_int_var(0, horizon, "top")
    plain = all(b.may_overlap is None for b in buffers)
    taking = [b for b in buffers if b.costs]
    offsets = model_arena(model, [] if plain else buffers, horizon)
    if plain:
        offsets = _rectangles(model, taking, horizon)
    for b, at in zip(taking if plain else buffers, offsets, strict=True):
        if b.costs:
            model.add(at + b.size_bytes <= top)
    model.minimize(top)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model) == cp_model.OPTIMAL
    return int(solver.objective_value)


def _rectangles(model, buffers: list[Buffer], horizon: int):  # type: ignore[no-untyped-def]
    offsets, across, up = [], [], []
    for b in buffers:
        at = model.new_int_var(0, horizon, "")
        if b.offset is not None:
            model.add(at == b.offset)
        model.add_modulo_equality(0, at, b.alignment)
        offsets.append(at)
        across.append(model.new_fixed_size_interval_var(b.lower, b.upper - b.lower, ""))
        up.append(model.new_fixed_size_interval_var(at, b.size_bytes, ""))
    model.add_no_overlap_2d(across, up)
    return offsets


@needs_native
@pytest.mark.parametrize("kind", ["plain", "aligned", "fixed", "overlap", "mixed", "below"])
def test_agrees_with_cp_sat(kind: str) -> None:
    dice = random.Random(f"cp-sat {kind}")
    for case in cases(80):
        buffers = random_buffers(dice, kind)
        result = plan(buffers)
        check_plan(buffers, result.offsets, result.arena_bytes)
        assert result.outcome is Outcome.OPTIMAL, (case, buffers)
        assert result.arena_bytes == oracle_arena(buffers), (case, buffers)
        assert lower_bound(buffers) <= result.arena_bytes
        decides(buffers, result.arena_bytes)


@pytest.mark.parametrize("kind", ["plain", "aligned", "fixed", "overlap", "mixed", "below"])
def test_sections_that_are_left_out_of_the_bound_do_not_raise_it(kind: str) -> None:
    for seed in range(200):
        problem = prepare(random_buffers(random.Random(seed), kind, count=12))
        known = max((section_bound(problem, live) for live in problem.live), default=0)
        assert problem_bound(problem) == known


def decides(buffers: list[Buffer], least: int) -> None:
    """The exact search alone, without greedy, finds the least arena and refuses one byte less."""
    problem = prepare(buffers)
    if not problem.index:
        return
    fits, offsets = native.decide(problem, least, PlanOptions(), 10.0)
    assert fits
    assert offsets is not None
    check_plan(buffers, problem.restore(offsets), least)
    assert native.decide(problem, least - 1, PlanOptions(), 10.0)[0] is False


def oracle_cost(buffers: list[Buffer], regions: tuple[Region, ...]) -> int | None:
    """The least sum of sizes times ranks, or None where nothing fits."""
    model = cp_model.CpModel()
    horizon = sum(b.size_bytes + b.alignment for b in buffers) + 200
    cost: list[Any] = []
    chosen = [[model.new_bool_var("") for _ in regions] for _ in buffers]
    for b, choice in zip(buffers, chosen, strict=True):
        model.add_exactly_one(choice)
        names = b.regions or tuple(region.name for region in regions)
        for region, var in zip(regions, choice, strict=True):
            if region.name not in names:
                model.add(var == 0)
            elif b.costs:
                cost.append(names.index(region.name) * b.size_bytes * var)
    for r, region in enumerate(regions):
        present = [choice[r] for choice in chosen]
        for b, at, here in zip(
            buffers, model_arena(model, buffers, horizon, present), present, strict=True
        ):
            if b.costs and region.capacity_bytes is not None:
                model.add(at + b.size_bytes <= region.capacity_bytes).only_enforce_if(here)
    model.minimize(sum(cost))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    status = solver.solve(model)
    return int(solver.objective_value) if status == cp_model.OPTIMAL else None


@needs_native
def test_two_regions_agree_with_cp_sat() -> None:
    dice = random.Random("regions")
    for case in range(100):
        regions = (
            Region("fast", dice.randint(4, 16)),
            Region("slow", dice.choice([None, dice.randint(8, 24)])),
        )
        kind = dice.choice(["plain", "aligned", "overlap", "below"])
        buffers = [
            replace(b, regions=dice.choice([(), (), ("slow", "fast"), ("fast",), ("slow",)]))
            for b in random_buffers(dice, kind, dice.randint(1, 7))
        ]
        expected = oracle_cost(buffers, regions)
        result = plan(buffers, options=PlanOptions(regions=regions))
        if expected is None:
            assert result.outcome is Outcome.INFEASIBLE, (case, buffers, regions)
            continue
        assert result.outcome is Outcome.OPTIMAL, (case, buffers, regions)
        check_regions(buffers, result.offsets, result.regions, regions)
        assert result.statistics["cost_bytes"] == expected, (case, buffers, regions)


def brute_force(buffers: list[Buffer], best: int) -> int:
    """The least arena, trying every offset below ``best`` for every buffer."""

    def free(i: int, at: int, offsets: list[int]) -> bool:
        try:
            check_plan([*buffers[: i + 1]], [*offsets, at])
        except Exception:
            return False
        return True

    def walk(i: int, offsets: list[int], arena: int) -> None:
        nonlocal best
        if i == len(buffers):
            best = min(best, arena)
            return
        b = buffers[i]
        for at in range(max(1, best - b.size_bytes)) if b.offset is None else [b.offset]:
            end = max(arena, at + b.size_bytes if b.costs else 0)
            if end < best and free(i, at, offsets):
                walk(i + 1, [*offsets, at], end)

    walk(0, [], 0)
    return best


@needs_native
def test_rules_on_and_off_against_brute_force() -> None:
    dice = random.Random("rules")
    for _ in cases(8, most=25):
        buffers = random_buffers(dice, dice.choice(["aligned", "fixed", "mixed", "below"]), 4)
        ceiling = sum(b.size_bytes + b.alignment + (b.offset or 0) for b in buffers) + 1
        expected = brute_force(buffers, ceiling)
        for flags in itertools.product((False, True), repeat=len(RULES)):
            options = PlanOptions(rules=dict(zip(RULES, flags, strict=True)))
            result = plan(buffers, "exact", options)
            check_plan(buffers, result.offsets)
            assert (result.arena_bytes, result.outcome) == (expected, Outcome.OPTIMAL), (
                buffers,
                options.rules,
            )


@needs_native
def test_rules_agree_on_larger_ones() -> None:
    dice = random.Random("larger")
    for _ in range(12):
        buffers = random_buffers(dice, dice.choice(["plain", "mixed", "overlap", "below"]), 10)
        expected = plan(buffers).arena_bytes
        for flags in itertools.product((False, True), repeat=len(RULES)):
            options = PlanOptions(rules=dict(zip(RULES, flags, strict=True)))
            result = plan(buffers, "exact", options)
            assert (result.arena_bytes, result.outcome) == (expected, Outcome.OPTIMAL)
