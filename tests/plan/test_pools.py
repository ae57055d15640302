"""Pools against brute force and the naive checker; live ranges told from conflicts alone."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from tvm_serenity.memory import LiveRange
from tvm_serenity.plan.conflicts import check_conflicts, place_by_conflicts
from tvm_serenity.plan.intervals import intervals_of
from tvm_serenity.plan.pools import METHODS, Pools, check_pools, share

SPANS = st.tuples(st.integers(0, 12), st.integers(1, 6), st.integers(1, 40))


def _ranges(spans: list[tuple[int, int, int]]) -> list[LiveRange]:
    return [LiveRange(f"b{i}", size, a, a + n, (i,)) for i, (a, n, size) in enumerate(spans)]


def _overlap(one: LiveRange, two: LiveRange) -> bool:
    return one.start < two.stop and two.start < one.stop


def _least(ranges: list[LiveRange]) -> int:
    """The least sum of pools, over all partitions."""
    best = sum(r.size_bytes for r in ranges)
    for pool_of in itertools.product(range(len(ranges)), repeat=len(ranges)):
        members = [[r for r, p in zip(ranges, pool_of, strict=True) if p == q] for q in pool_of]
        if any(_overlap(a, b) for m in members for a, b in itertools.combinations(m, 2)):
            continue
        total = sum(
            max(r.size_bytes for r, p in zip(ranges, pool_of, strict=True) if p == q)
            for q in set(pool_of)
        )
        best = min(best, total)
    return best


@given(st.lists(SPANS, max_size=4))
@settings(max_examples=20, deadline=None)
def test_share_is_least_on_small_instances(spans: list[tuple[int, int, int]]) -> None:
    ranges = _ranges(spans)
    found = share(ranges)
    check_pools(ranges, found)
    assert found.total_bytes == _least(ranges)


@given(st.lists(SPANS, max_size=14))
@settings(max_examples=20, deadline=None)
def test_every_method_is_valid(spans: list[tuple[int, int, int]]) -> None:
    ranges = _ranges(spans)
    best = share(ranges, rounds=50)
    for method in METHODS.values():
        found: Pools = method(ranges)
        check_pools(ranges, found)
        assert found.total_bytes >= best.total_bytes


@given(st.lists(SPANS, max_size=30), st.randoms(use_true_random=False))
@settings(max_examples=80, deadline=None)
def test_intervals_have_the_conflicts(spans: list[tuple[int, int, int]], rng: object) -> None:
    rng.shuffle(spans)  # type: ignore[attr-defined]
    ranges = _ranges(spans)
    conflicts = [
        [j for j, other in enumerate(ranges) if j != i and _overlap(one, other)]
        for i, one in enumerate(ranges)
    ]
    again = [LiveRange("", 1, a, b, ()) for a, b in intervals_of(conflicts)]
    for i, one in enumerate(again):
        assert [j for j, o in enumerate(again) if j != i and _overlap(one, o)] == conflicts[i]


def test_conflicts_of_no_intervals_stay_apart() -> None:
    ring = [[1, 3], [0, 2], [1, 3], [2, 0]]
    found = [LiveRange("", 1, a, b, ()) for a, b in intervals_of(ring)]
    assert all(_overlap(found[i], found[j]) for i, near in enumerate(ring) for j in near)


@given(st.lists(st.tuples(SPANS, SPANS), max_size=9))
@settings(max_examples=30, deadline=None)
def test_conflicts_of_what_lives_twice(
    twice: list[tuple[tuple[int, int, int], tuple[int, int, int]]],
) -> None:
    """Valid, aligned, and never above the placements it starts from."""
    pairs = [(_ranges([a])[0], _ranges([b])[0]) for a, b in twice]
    sizes = [one.size_bytes for one, _ in pairs]
    conflicts = [
        {
            j
            for j, other in enumerate(pairs)
            if j != i and any(_overlap(a, b) for a in one for b in other)
        }
        for i, one in enumerate(pairs)
    ]
    stacked = [sum(-(-s // 4) * 4 for s in sizes[:i]) for i in range(len(sizes))]
    offsets = place_by_conflicts(sizes, [4] * len(sizes), conflicts, [stacked], rounds=40)
    check_conflicts(sizes, conflicts, offsets)
    assert all(o % 4 == 0 for o in offsets)
    ends = [o + s for o, s in zip(offsets, sizes, strict=True)]
    assert max(ends, default=0) <= max(map(sum, zip(stacked, sizes, strict=True)), default=0)
