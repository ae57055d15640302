"""Capacities, explanations, limits, hostile input, and life without the native core."""

import random
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from tvm_serenity.errors import InputError, MissingPartError
from tvm_serenity.plan import (
    Buffer,
    Overlap,
    Plan,
    PlanOptions,
    Progress,
    Region,
    check_plan,
    check_regions,
    find_conflict,
    lower_bound,
    native,
    plan,
)
from tvm_serenity.search.deadline import within
from tvm_serenity.search.outcome import Outcome

needs_native = pytest.mark.skipif(not native.available(), reason="the native core is not built")


def staircase(count: int) -> list[Buffer]:
    """Sizes and lifetimes without a common measure: hard to pack to the last byte."""
    return [
        Buffer(f"s{i}", i * 7 % 31, i * 7 % 31 + 3 + i * 5 % 11, 97 + i * 61 % 211)
        for i in range(count)
    ]


def conflict_of(result: Plan) -> list[str]:
    names = result.statistics["conflict"]
    assert isinstance(names, tuple)
    return sorted(names)


def test_conflict_at_one_step_leaves_out_bystanders() -> None:
    buffers = [Buffer("a", 0, 4, 60), Buffer("b", 1, 2, 50), Buffer("c", 1, 3, 5)]
    result = plan([*buffers, Buffer("d", 5, 6, 90)], options=PlanOptions(capacity_bytes=100))
    assert result.outcome is Outcome.INFEASIBLE
    assert conflict_of(result) == ["a", "b"]
    assert result.statistics["conflict_minimal"] is True


@pytest.mark.parametrize("seed", range(5))
def test_conflict_among_many_at_one_step_is_small(seed: int) -> None:
    """Begun with the largest that are too much: with all it took seconds, and named them all."""
    rng = random.Random(seed)
    buffers = [Buffer(f"b{i}", i % 7, 9, rng.randrange(1, 1000)) for i in range(30_000)]
    names, minimal = find_conflict(buffers, 5_000, PlanOptions(), seconds=0.01)
    size = {b.name: b.size_bytes for b in buffers}
    total = sum(size[name] for name in names)
    assert 5_000 < total <= 5_000 + 999
    if minimal:
        assert total - min(size[name] for name in names) <= 5_000


@needs_native
def test_conflict_beyond_the_bound_is_minimal() -> None:
    buffers = [
        Buffer("low", 0, 2, 4, offset=0),
        Buffer("high", 2, 4, 4, offset=4),
        Buffer("both", 1, 3, 4),
        Buffer("small", 0, 1, 1),
    ]
    assert plan(buffers).arena_bytes == 12
    options = PlanOptions(capacity_bytes=11)
    result = plan(buffers, options=options)
    assert result.outcome is Outcome.INFEASIBLE
    assert conflict_of(result) == ["both", "high", "low"]
    named = [b for b in buffers if b.name in conflict_of(result)]
    for left_out in named:
        rest = [b for b in named if b is not left_out]
        assert plan(rest, options=options).offsets


@needs_native
def test_capacity_that_can_be_met() -> None:
    least = plan(staircase(20)).arena_bytes
    result = plan(staircase(20), options=PlanOptions(capacity_bytes=least))
    check_plan(result.buffers, result.offsets, least)
    assert result.outcome is Outcome.OPTIMAL
    assert plan(staircase(20), options=PlanOptions(capacity_bytes=0)).outcome is Outcome.INFEASIBLE


@needs_native
@pytest.mark.parametrize("method", ["auto", "local", "exact"])
def test_an_arena_that_is_enough_proves_nothing_else(method: str) -> None:
    buffers = staircase(60)
    best = plan(buffers)
    enough = plan(buffers, "greedy").arena_bytes
    assert best.arena_bytes < enough
    result = plan(buffers, method, PlanOptions(enough_bytes=enough))
    check_plan(buffers, result.offsets, enough)
    assert result.lower_bound_bytes <= best.arena_bytes
    assert result.outcome is not Outcome.OPTIMAL or result.arena_bytes == best.arena_bytes
    less = plan(buffers, "exact", PlanOptions(enough_bytes=best.arena_bytes - 1))
    assert (less.arena_bytes, less.outcome) == (best.arena_bytes, best.outcome)


@pytest.mark.parametrize("method", ["auto", "greedy", "local"])
def test_time_limit_is_kept(method: str) -> None:
    started = time.perf_counter()
    result = plan(staircase(600), method, PlanOptions(time_limit_s=0.2))
    check_plan(result.buffers, result.offsets, result.arena_bytes)
    assert time.perf_counter() - started < 5
    assert result.outcome in (Outcome.OPTIMAL, Outcome.TIMEOUT, Outcome.FEASIBLE)
    assert result.lower_bound_bytes <= result.arena_bytes


@needs_native
def test_same_seed_same_answer() -> None:
    first, second = (plan(staircase(25), options=PlanOptions(seed=5)) for _ in range(2))
    assert (first.offsets, first.statistics) == (second.offsets, second.statistics)


@needs_native
def test_interrupt_ends_the_search() -> None:
    """In a process of its own: an interrupt would end whatever else runs in this one."""
    found = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=60
    )
    assert found.stdout == "interrupted\n", found.stderr


INTERRUPTED = """
import os, signal, threading
from tests.plan.test_limits import fixed_comb
from tvm_serenity.plan import PlanOptions, plan
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    plan(fixed_comb(), options=PlanOptions(time_limit_s=120))
except KeyboardInterrupt:
    print("interrupted")
"""


def fixed_comb() -> list[Buffer]:
    """Far from its bound for good: the search is never through."""
    return [Buffer(f"c{i}", i % 40, i % 40 + 1 + i % 17, 1009 + i * i % 997) for i in range(400)]


@needs_native
def test_progress_reports_and_may_stop() -> None:
    seen: list[Progress] = []
    plan(fixed_comb(), options=PlanOptions(time_limit_s=0.5, progress=seen.append))
    assert seen
    assert all(p.lower_bound_bytes <= p.arena_bytes for p in seen)

    def stop(progress: Progress) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        plan(fixed_comb(), options=PlanOptions(progress=stop))


def test_twenty_thousand_buffers_and_a_deep_chain() -> None:
    chain = [Buffer(f"n{i}", i, i + 2, 1 + i % 7) for i in range(20_000)]
    result = plan(chain, "auto" if native.available() else "greedy_by_start")
    check_plan(chain, result.offsets, result.arena_bytes)
    assert result.arena_bytes <= 2 * result.lower_bound_bytes


def test_sizes_near_the_limit() -> None:
    huge = 2**60
    result = plan([Buffer("a", 0, 2, huge), Buffer("b", 1, 3, huge - 5), Buffer("c", 2, 4, 7)])
    assert result.arena_bytes == 2 * huge - 5
    with pytest.raises(InputError, match=r"'b'.*exceed"):
        plan([Buffer("a", 0, 2, 2**62 - 3), Buffer("b", 5, 6, 2)])


@pytest.mark.parametrize(
    ("buffers", "message"),
    [
        ([Buffer("a", 0, 1, 1), Buffer("a", 0, 1, 1)], "'a': two buffers have this name"),
        ([Buffer("a", 0, 1, 1, may_overlap="z")], "'a'.*names 'z', which is not a buffer"),
        ([Buffer("a", 0, 1, 4, offset=0), Buffer("b", 0, 1, 4, offset=2)], "'a' and 'b'.*overlap"),
        ([Buffer("a", 0, 1, 4, regions=("sram",))], "'a'.*regions"),
    ],
)
def test_contradictions_are_named(buffers: list[Buffer], message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan(buffers)


def test_options_are_checked() -> None:
    one = (Region("sram"),)
    for bad in (
        {"capacity_bytes": -1},
        {"alignment": 0},
        {"rules": {"luck": True}},
        {"enough_bytes": -1},
        {"enough_bytes": 1, "regions": one},
    ):
        with pytest.raises(InputError):
            PlanOptions(**bad)
    with pytest.raises(InputError, match="unknown planner"):
        plan([], "magic")


def test_without_the_native_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_plan", None)
    buffers = staircase(40)
    result = plan(buffers, options=PlanOptions(time_limit_s=1.0))
    check_plan(buffers, result.offsets, result.arena_bytes)
    proved = result.arena_bytes == result.lower_bound_bytes
    assert (result.outcome is Outcome.OPTIMAL) == proved
    with pytest.raises(MissingPartError, match="compiler"):
        plan(buffers, "exact")


@needs_native
@pytest.mark.parametrize("overlap", Overlap)
def test_in_place_saves_bytes(overlap: Overlap) -> None:
    y = Buffer("y", 1, 3, 6, may_overlap="x", overlap=overlap, distance_bytes=2)
    buffers = [Buffer("x", 0, 2, 8), y]
    result = plan(buffers)
    least = 10 if overlap is Overlap.BELOW else 8
    assert (result.arena_bytes, result.outcome) == (least, Outcome.OPTIMAL)
    apart = [replace(b, may_overlap=None) for b in buffers]
    assert plan(apart).arena_bytes == 14


@needs_native
def test_regions_by_preference() -> None:
    regions = (Region("dtcm", 64), Region("sram", 256), Region("psram"))
    buffers = [
        Buffer("hot", 0, 4, 48),
        Buffer("dma", 1, 3, 32, alignment=32, regions=("sram",)),
        Buffer("big", 0, 4, 500),
        Buffer("late", 4, 5, 64),
    ]
    result = plan(buffers, options=PlanOptions(regions=regions))
    check_regions(buffers, result.offsets, result.regions, regions)
    assert result.regions == ("dtcm", "sram", "psram", "dtcm")
    assert result.region_bytes == {"dtcm": 64, "sram": 32, "psram": 500}
    assert result.outcome is Outcome.OPTIMAL


def test_what_is_live_together_is_too_much_for_all_regions() -> None:
    buffers = [Buffer(f"b{i}", i // 2, i // 2 + 2, 7) for i in range(5_000)]
    regions = (Region("one", 10), Region("two", 17))
    result = plan(buffers, options=PlanOptions(regions=regions))
    assert (result.outcome, result.statistics["nodes"]) == (Outcome.INFEASIBLE, 0)
    with pytest.raises(InputError, match="unknown region"):
        plan(
            [*buffers, Buffer("c", 0, 1, 1, regions=("three",))],
            options=PlanOptions(regions=regions),
        )


def test_regions_without_time_are_placed_as_by_first_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last memory has no limit: a placement is known before any search, and is not lost."""
    rng = random.Random(3)
    starts = [rng.randrange(200) for _ in range(300)]
    sizes = [rng.choice([64, 208, 522, 1044, 4176, 20888]) for _ in starts]
    lives = [rng.choice([2, 3, 5, 40]) for _ in starts]
    drawn = zip(starts, sizes, lives, strict=True)
    buffers = [Buffer(f"b{i}", s, s + n, size) for i, (s, size, n) in enumerate(drawn)]
    whole = plan(buffers, "greedy").arena_bytes
    regions = (Region("fast", whole * 3 // 4), Region("slow", None))
    options = PlanOptions(regions=regions, time_limit_s=0.2)
    found = plan(buffers, options=options)
    check_regions(buffers, found.offsets, found.regions, regions)
    assert found.outcome is Outcome.TIMEOUT


def test_a_bound_beside_fixed_buffers_ends_at_a_deadline() -> None:
    """What is found until then is a bound; with time it is the one of all sections."""
    free = [replace(b, alignment=16) for b in staircase(400)]
    fixed = [Buffer(f"f{i}", i, i + 2, 50, offset=300 * i) for i in range(0, 30, 3)]
    with within(0.0):
        early = lower_bound([*free, *fixed])
    assert max(b.offset + b.size_bytes for b in fixed if b.offset) <= early
    assert lower_bound(staircase(400)) <= early < lower_bound([*free, *fixed])
