"""Placements of many buffers: quick ones, made better; constraints kept, checked by pairs."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cases import sampled
from tests.large_graphs import drawn_trace, steady_trace
from tvm_serenity.errors import CheckError
from tvm_serenity.plan import (
    Buffer,
    PlanOptions,
    check_plan,
    lower_bound,
    native,
    plan,
    read_csv,
)
from tvm_serenity.plan.problem import prepare

needs_native = pytest.mark.skipif(not native.available(), reason="the native core is not built")
MANY = 6_500
"""More than the exact search descends into at once."""
TRACES = Path(__file__).parents[2] / ".." / "shared" / "data" / "dsa" / "traces"


def crowd(count: int, seed: int, align: int = 1, fixed: int = 0) -> list[Buffer]:
    """Buffers of log-uniform sizes and lifetimes; the first ``fixed`` lie one after the other."""
    rng = random.Random(seed)
    sizes = [64 * int(2 ** rng.uniform(0, 10)) for _ in range(50)]
    made = []
    for i in range(count):
        start, life = rng.randrange(2 * count), 1 + int(2 ** rng.uniform(0, 8))
        made.append(Buffer(f"b{i}", start, start + life, rng.choice(sizes), align))
    at = 0
    for i in range(fixed):
        made[i] = replace(made[i], lower=0, upper=2 * count + 300, offset=at)
        at += made[i].size_bytes + 192
    return made


@pytest.mark.parametrize("step", [1, 10**12])
@pytest.mark.parametrize("seed", range(20))
def test_sections_are_the_largest_sets_of_buffers_that_live_together(seed: int, step: int) -> None:
    rng = random.Random(seed)
    lives = [(s := rng.randrange(-6, 6), s + rng.randint(1, 6)) for _ in range(rng.randint(0, 9))]
    buffers = [Buffer(f"b{i}", s * step, e * step, 8) for i, (s, e) in enumerate(lives)]
    alive = [frozenset(i for i, (s, e) in enumerate(lives) if s <= t < e) for t in range(-6, 12)]
    largest = [one for one in alive if one and not any(one < other for other in alive)]
    found = prepare(buffers)
    assert [frozenset(live) for live in found.live] == list(dict.fromkeys(largest))
    assert found.load.tolist() == [8 * len(live) for live in found.live]


@needs_native
@pytest.mark.parametrize(("align", "fixed"), [(1, 0), (192, 0), (64, 5)])
def test_a_better_placement_keeps_every_constraint(align: int, fixed: int) -> None:
    buffers = crowd(MANY, seed=fixed, align=align, fixed=fixed)
    quick = plan(buffers, options=PlanOptions(time_limit_s=0.0))
    found = plan(buffers, options=PlanOptions(time_limit_s=3.0))
    for one in (quick, found):
        check_plan(buffers, one.offsets)
        assert max(o + b.size_bytes for b, o in zip(buffers, one.offsets, strict=True)) == (
            one.arena_bytes
        )
    assert lower_bound(buffers) <= found.lower_bound_bytes <= found.arena_bytes
    assert found.arena_bytes <= quick.arena_bytes


@needs_native
def test_without_time_or_the_exact_search_many_buffers_are_placed() -> None:
    buffers = crowd(MANY, seed=1)
    found = plan(buffers, "local", PlanOptions(time_limit_s=0.0))
    check_plan(buffers, found.offsets, found.arena_bytes)


@needs_native
@pytest.mark.parametrize("align", [1, 192])
def test_nested_lives_with_short_ones_between_are_placed_at_the_bound_at_once(align: int) -> None:
    rng, half = random.Random(align), MANY // 2
    saved = [Buffer(f"s{i}", i, 2 * half - i, 192 * rng.randint(1, 99), align) for i in range(half)]
    passing = [Buffer(f"p{i}", 2 * i, 2 * i + 2, 192 * 50, align) for i in range(half)]
    found = plan([*saved, *passing], options=PlanOptions(time_limit_s=0.0))
    check_plan([*saved, *passing], found.offsets, found.arena_bytes)
    assert found.arena_bytes == sum(b.size_bytes for b in saved) + 192 * 50
    assert found.arena_bytes == found.lower_bound_bytes


@needs_native
def test_a_placement_moved_by_a_byte_is_rejected() -> None:
    buffers = crowd(MANY, seed=4)
    found = plan(buffers, options=PlanOptions(time_limit_s=0.0))
    rng, rejected = random.Random(1), 0
    for _ in range(20):
        offsets = list(found.offsets)
        which = rng.randrange(MANY)
        lowest = min(b.size_bytes for b in buffers)
        offsets[which] += rng.choice([-1, 1]) * rng.randrange(1, lowest + 1)
        try:
            check_plan(buffers, offsets, found.arena_bytes)
        except CheckError:
            rejected += 1
    assert rejected >= 15  # a buffer with room on one side may move there


@needs_native
@pytest.mark.parametrize(
    ("aligns", "fixed", "gap"),
    sampled([((1,), 0, 0.005), ((64,), 4, 0.005), ((16, 64, 256), 4, 0.01)], 2),
)
def test_where_much_the_same_is_live_everywhere_the_arena_ends_near_the_bound(
    aligns: tuple[int, ...], fixed: int, gap: float
) -> None:
    buffers = [
        replace(b, alignment=aligns[i % len(aligns)])
        for i, b in enumerate(steady_trace(MANY, seed=3))
    ]
    at = 0
    for i in range(fixed):
        buffers[i] = replace(buffers[i], offset=at)
        at += -(-(buffers[i].size_bytes + 192) // 256) * 256
    options = PlanOptions(steps=300_000, time_limit_s=None)
    first, again = (plan(buffers, options=options) for _ in range(2))
    check_plan(buffers, first.offsets, first.arena_bytes)
    assert first.offsets == again.offsets
    assert first.gap <= gap


@needs_native
@pytest.mark.parametrize("seed", [1, 2, 4, 5, 6])
def test_all_are_placed_anew_where_what_is_around_a_core_wastes_much(seed: int) -> None:
    buffers = steady_trace(MANY, seed)
    found = plan(buffers, options=PlanOptions(steps=150_000, time_limit_s=None))
    check_plan(buffers, found.offsets, found.arena_bytes)
    assert found.gap <= 0.005


@needs_native
@pytest.mark.skipif(not TRACES.is_dir(), reason="shared data/dsa is absent")
@pytest.mark.parametrize(
    "like", sampled(["TestPersonDetectionModel", "somas_resnet50", "deep_speech"], 2)
)
def test_many_buffers_as_in_small_traces_end_near_the_bound(like: str) -> None:
    buffers = drawn_trace(read_csv(TRACES / f"{like}.csv"), MANY, seed=3)
    found = plan(buffers, options=PlanOptions(steps=300_000, time_limit_s=None))
    check_plan(buffers, found.offsets, found.arena_bytes)
    assert found.gap <= 0.005
