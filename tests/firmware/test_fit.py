"""What a program takes of a board, against a plain count of all steps."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tvm_serenity.boards import board
from tvm_serenity.firmware.fit import fit
from tvm_serenity.firmware.memory import Placed
from tvm_serenity.memory import LiveRange


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 5)), max_size=12))
def test_the_worst_step_is_the_one_with_most_alive(drawn: list[tuple[int, int, int]]) -> None:
    lives = tuple(
        LiveRange(f"r{i}", size, start, start + length, (i,))
        for i, (start, length, size) in enumerate(drawn)
    )
    placed = Placed(lives, ("ram",) * len(lives), (0,) * len(lives), {"ram": 0}, True)
    found = fit(board("mps2-an500"), placed, 0, 0)
    alive = [{r for r in lives if r.start <= step < r.stop} for step in range(20)]
    most = max(sum(r.size_bytes for r in there) for there in alive)
    assert found.peak_bytes == most == sum(r.size_bytes for r in found.peak)
    assert set(found.peak) in alive
