"""The rival that fills banks in their order: a worked example, and that placements are valid."""

import random

import pytest

from tests.plan.banked_greedy import banked_greedy
from tvm_serenity.plan import Buffer, Region, check_regions

BANKS = (Region("fast", 100), Region("slow", None))


def test_the_largest_first_then_the_smallest_gap_then_the_next_bank() -> None:
    lives = {"a": (0, 4, 60), "b": (0, 2, 30), "c": (2, 4, 40), "d": (2, 3, 10), "e": (0, 1, 10)}
    buffers = [Buffer(name, *life) for name, life in lives.items()]
    assert banked_greedy(buffers, BANKS) == ((0, 0), (0, 60), (0, 60), (1, 0), (0, 90))


def test_a_gap_is_taken_before_the_bytes_above_all() -> None:
    lives = {"a": (0, 2, 50), "b": (1, 4, 30), "c": (2, 4, 45), "d": (3, 4, 2)}
    buffers = [Buffer(name, *life) for name, life in lives.items()]
    assert banked_greedy(buffers, BANKS) == ((0, 0), (0, 50), (0, 0), (0, 45))


def test_a_buffer_that_fits_nowhere_is_refused() -> None:
    with pytest.raises(ValueError, match="'a' of 101 bytes fits into no bank"):
        banked_greedy([Buffer("a", 0, 1, 101)], BANKS[:1])


def test_buffers_of_a_bank_that_are_live_together_are_disjoint() -> None:
    for seed in range(20):
        rng = random.Random(seed)
        alignment, starts = rng.choice([1, 16]), [rng.randrange(12) for _ in range(16)]
        buffers = [
            Buffer(f"{i}", at, at + rng.randint(1, 6), rng.randint(1, 40), alignment)
            for i, at in enumerate(starts)
        ]
        found = banked_greedy(buffers, BANKS)
        assert {bank for bank, _ in found} == {0, 1}
        regions = [BANKS[bank].name for bank, _ in found]
        check_regions(buffers, [at for _, at in found], regions, BANKS)
