"""Memory against work: every point is the least there is, and every step of it is exact."""

from itertools import combinations
from typing import Any

import pytest

from tests.cases import cases, scaled
from tests.cli.run import answer, serenity
from tests.rows.nets import model, random_module
from tests.sliding.test_steady import read
from tvm_serenity.errors import InputError
from tvm_serenity.search.outcome import Outcome
from tvm_serenity.sliding import moved_window, sliding_step
from tvm_serenity.sliding.check import check_windows
from tvm_serenity.sliding.choose import curve, within_bytes
from tvm_serenity.sliding.step import least_bytes

KWS = "mlperf_tiny/kws_dscnn_int8.tflite"


def every(window: Any, counts: Any) -> list[tuple[float, int]]:
    """Work and arena of every set of features that are kept."""
    network, found = window.network, []
    for size in range(len(network.features) + 1):
        for again in combinations(window.may_be_kept, size):
            steady = window.steady(frozenset(again))
            rows = [
                steady.rows_computed(i) / max(1, steady.rows_in_all(i)) for i in range(len(counts))
            ]
            work = sum(c * r for c, r in zip(counts, rows, strict=True)) / sum(counts)
            step = sliding_step(steady)
            assert least_bytes(steady) <= step.streaming.lower_bound_bytes
            found.append((work, step.arena_bytes))
    return found


def best(found: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """Those that no other beats."""
    least = {a for a in found if not any(b[0] <= a[0] and b[1] <= a[1] and b != a for b in found)}
    return sorted(least)


def test_points_are_least_on_networks_drawn_at_random() -> None:
    from tvm_serenity.relax.rows_reads import operations

    points = proved = chained = 0
    for seed in cases(16, most=40):
        rows, reads = read(random_module(seed, quantised=bool(seed % 3)))
        counts = operations(rows)
        for step in (1, 2):
            try:
                window = moved_window(rows.network, step, reads)
            except InputError:
                continue
            if len(window.may_be_kept) > 6:
                continue
            found = curve(window, counts)
            ways = every(window, counts)
            assert [(p.work, p.step.arena_bytes) for p in found] == best(ways)
            assert all(p.outcome is Outcome.OPTIMAL for p in found)
            for some in (1, 3, 9):  # the rest by a chain: what it says that none is below holds
                for point in curve(window, counts, most_ways=some):
                    least = min(arena for work, arena in ways if work <= point.work)
                    assert point.least_bytes <= least <= point.step.arena_bytes
                    proved += point.outcome is Outcome.OPTIMAL
                    chained += point.outcome is not Outcome.OPTIMAL
            for point in found:
                point.step.streaming.check()
                check_windows(point.step, reads)
            assert within_bytes(found, found[-1].step.arena_bytes) is found[-1]
            assert within_bytes(found, found[-1].step.arena_bytes - 1) is None
            points += len(found)
    assert points >= scaled(10, 25)
    assert proved > scaled(20, 50)
    assert chained > scaled(3, 10)


def test_the_curve_of_a_keyword_spotter() -> None:
    said = answer("rows", str(model(KWS)), "--sliding", "2", "--curve", "--ram", "16K", "--check")
    curve_said = [(p["work"], p["arena_bytes"]) for p in said["curve"]]
    assert curve_said == sorted(curve_said)
    assert [b for _, b in curve_said] == sorted((b for _, b in curve_said), reverse=True)
    assert curve_said[0] == (pytest.approx(0.417, abs=0.001), 28_906)
    assert curve_said[-1][0] == 1
    assert said["met"]
    assert said["arena_bytes"] <= 16_384 < curve_said[3][1]
    assert said["work"] == pytest.approx(0.526, abs=0.001)
    small = serenity("rows", str(model(KWS)), "--sliding", "2", "--ram", "2K")
    assert small.returncode == 1
