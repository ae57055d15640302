"""What a program takes of a board, against a plain count of all steps."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm_serenity.boards import MemoryRegion, board
from tvm_serenity.firmware.board.fit import fit
from tvm_serenity.firmware.place.memory_map import MemoryMap, Room, place
from tvm_serenity.memory import LiveRange
from tvm_serenity.plan import Buffer, plan


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 5)), max_size=12))
def test_the_worst_step_is_the_one_with_most_alive(drawn: list[tuple[int, int, int]]) -> None:
    lives = tuple(
        LiveRange(f"r{i}", size, start, start + length, (i,))
        for i, (start, length, size) in enumerate(drawn)
    )
    placed = MemoryMap(lives, ("ram",) * len(lives), (0,) * len(lives), {"ram": 0}, True)
    found = fit(board("mps2-an500"), placed, 0, 0)
    alive = [{r for r in lives if r.start <= step < r.stop} for step in range(20)]
    most = max(sum(r.size_bytes for r in there) for there in alive)
    assert found.peak_bytes == most == sum(r.size_bytes for r in found.peak)
    assert set(found.peak) in alive


@pytest.mark.parametrize(("time_limit_s", "proved"), [(0.0, False), (None, True)])
def test_no_room_is_proved_or_said_to_be_open(time_limit_s: float | None, proved: bool) -> None:
    """7 + 5 + 4 + 4 bytes live together, in two regions of 10: no two sums are 10."""
    ranges = [LiveRange(f"r{size}", size, 0, 1, (i,)) for i, size in enumerate((7, 5, 4, 4))]
    whole = plan([Buffer(r.name, 0, 1, r.size_bytes) for r in ranges[:3]] + [Buffer("r", 0, 1, 4)])
    room = [Room(MemoryRegion(name, "sram", 0, 10), 10) for name in ("a", "b")]
    found = place(ranges, whole, room, 1, time_limit_s)
    assert (found.fits, found.proved) == (False, proved)


def test_more_than_all_regions_have_needs_no_search() -> None:
    ranges = [LiveRange(f"r{i}", 7, 0, 1, (i,)) for i in range(3)]
    whole = plan([Buffer(r.name, 0, 1, r.size_bytes) for r in ranges])
    room = [Room(MemoryRegion(name, "sram", 0, 10), 10) for name in ("a", "b")]
    found = place(ranges, whole, room, 1, 0.0)
    assert (found.fits, found.proved) == (False, True)
