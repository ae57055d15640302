"""Equal problems are searched once; searches that a time limit ended are repeated."""

from dataclasses import replace
from typing import Any

import pytest

from tests.plan.test_limits import needs_native, staircase
from tvm_serenity.plan import Buffer, Overlap, PlanOptions, native, plan

pytestmark = needs_native


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The options of the searches that are run."""
    ran: list[object] = []
    search = native._solved

    def counted(*given: Any) -> dict[str, Any]:
        ran.append(given)
        return search(*given)

    monkeypatch.setattr(native, "_KNOWN", type(native._KNOWN)())
    monkeypatch.setattr(native, "_solved", counted)
    return ran


def test_equal_problems_are_searched_once(searches: list[object]) -> None:
    options, buffers = PlanOptions(steps=2_000, time_limit_s=60.0), staircase(30)
    first = plan(buffers, options=options)
    later = [
        replace(b, name=f"other {b.name}", lower=b.lower * 2, upper=b.upper * 2) for b in buffers
    ]
    again = plan(later, options=options)
    assert len(searches) == 1
    assert (again.offsets, again.outcome) == (first.offsets, first.outcome)


def test_what_determines_a_result_is_compared(searches: list[object]) -> None:
    pair = [Buffer("x", 0, 2, 8), Buffer("y", 1, 3, 6), Buffer("z", 0, 3, 5)]
    options, count = PlanOptions(), 0
    for buffers in (
        pair,
        [replace(pair[0], size_bytes=9), *pair[1:]],
        [replace(pair[0], alignment=4), *pair[1:]],
        [replace(pair[0], upper=1), *pair[1:]],
        [replace(pair[0], offset=3), *pair[1:]],
        [pair[0], replace(pair[1], may_overlap="x"), pair[2]],
        [
            pair[0],
            replace(pair[1], may_overlap="x", overlap=Overlap.BELOW, distance_bytes=2),
            pair[2],
        ],
        [pair[0], replace(pair[1], may_overlap="x", overlap=Overlap.ANY), pair[2]],
    ):
        plan(buffers, options=options)
        count += 1
        assert len(searches) == count, buffers
    for other in (
        PlanOptions(steps=7),
        PlanOptions(seed=1),
        PlanOptions(capacity_bytes=40),
        PlanOptions(enough_bytes=30),
        PlanOptions(rules={"memo": False}),
    ):
        plan(pair, options=other)
        count += 1
        assert len(searches) == count, other
    plan(pair, "local", options)
    assert len(searches) == count + 1


def test_a_search_without_time_is_not_kept(searches: list[object]) -> None:
    for _ in range(2):
        plan(staircase(30), options=PlanOptions(time_limit_s=0.0))
    assert len(searches) == 2


def test_few_results_are_kept(searches: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_KNOWN_MAX", 2)
    for size in (1, 2, 3, 1, 3):
        plan([Buffer("x", 0, 1, size)])
    assert len(searches) == 4
    assert len(native._KNOWN) == 2
