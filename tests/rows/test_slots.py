"""Slots: rows and what lies over them as blocks, by hand and on random chains of rows."""

import random

import pytest

from tvm_serenity.errors import CheckError
from tvm_serenity.plan import Buffer, PlanOptions, check_plan, plan
from tvm_serenity.rows.overlap import with_overlaps
from tvm_serenity.rows.slots import OverlapPair, in_slots

QUICK = PlanOptions(time_limit_s=1)


def test_two_rows_and_a_chain_of_three() -> None:
    rows = [Buffer("a", 0, 2, 10), Buffer("b", 1, 4, 10), Buffer("c", 3, 5, 10)]
    known = plan(rows)
    assert known.arena_bytes == 20
    pairs = [OverlapPair(1, 0, 4), OverlapPair(2, 1, 0)]
    found = in_slots(rows, pairs, known, QUICK)
    assert found.arena_bytes == 14
    a, b, c = found.offsets
    assert (a - b, c - b) == (4, 0)
    check_plan(with_overlaps(rows, pairs), found.offsets)
    with pytest.raises(CheckError):
        check_plan(with_overlaps(rows, [OverlapPair(1, 0, 5), pairs[1]]), found.offsets)
    with pytest.raises(CheckError):
        check_plan(rows, found.offsets)


def test_what_lies_over_a_fixed_row_reaches_it_from_below() -> None:
    rows = [Buffer("a", 0, 2, 10, offset=8), Buffer("b", 1, 4, 10), Buffer("c", 3, 5, 10)]
    known = plan(rows)
    pairs = [OverlapPair(1, 0, 4), OverlapPair(2, 1, 2)]
    found = in_slots(rows, pairs, known, QUICK)
    check_plan(with_overlaps(rows, pairs), found.offsets)
    assert found.offsets[0] == 8
    assert found.arena_bytes == 18 < known.arena_bytes


def test_a_slot_that_is_twice_a_row_is_none() -> None:
    rows = [Buffer("a", 0, 2, 4), Buffer("b", 1, 4, 10)]
    known = plan(rows)
    assert in_slots(rows, [OverlapPair(1, 0, 9)], known, QUICK) is known


@pytest.mark.parametrize("seed", range(30))
def test_random_chains_keep_to_their_distances(seed: int) -> None:
    rng = random.Random(seed)
    rows: list[Buffer] = []
    pairs: list[OverlapPair] = []
    for chain in range(rng.randint(2, 6)):
        start = rng.randint(0, 8)
        for link in range(rng.randint(1, 4)):
            end = start + rng.randint(2, 5)
            align = rng.choice((1, 1, 4))
            rows.append(Buffer(f"{chain}.{link}", start, end, rng.randint(4, 20), align))
            if link:
                pairs.append(OverlapPair(len(rows) - 1, len(rows) - 2, rng.randint(0, 12)))
            start = end - 1
    known = plan(rows)
    found = in_slots(rows, pairs, known, QUICK)
    assert found.arena_bytes <= known.arena_bytes
    if found is not known:
        check_plan(with_overlaps(rows, pairs), found.offsets, found.arena_bytes)
