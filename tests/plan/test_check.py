"""The checker of placements against all pairs, on buffers and offsets drawn at random."""

import importlib
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.large_graphs import trace
from tests.plan.pairs import wrong_pairs
from tvm_serenity.errors import CheckError
from tvm_serenity.plan import Buffer, Overlap, PlanOptions, check_plan, plan

check = importlib.import_module("tvm_serenity.plan.check")


@st.composite
def placed(draw: st.DrawFn) -> tuple[list[Buffer], list[int]]:
    """Up to nine buffers, some of which may share bytes with another, and an offset for each."""
    count = draw(st.integers(1, 9))
    buffers = []
    for i in range(count):
        lower = draw(st.integers(0, 5))
        buffer = Buffer(str(i), lower, lower + draw(st.integers(0, 4)), draw(st.integers(0, 4)))
        if count > 1 and draw(st.integers(0, 2)) == 0:
            other = (i + draw(st.integers(1, count - 1))) % count
            kind = draw(st.sampled_from(list(Overlap)))
            distance = draw(st.integers(1, 3)) if kind is Overlap.BELOW else 0
            buffer = replace(buffer, may_overlap=str(other), overlap=kind, distance_bytes=distance)
        buffers.append(buffer)
    return buffers, [draw(st.integers(0, 12)) for _ in buffers]


@settings(max_examples=2_000, deadline=None, derandomize=True)
@given(placed(), st.sampled_from((1, 2, 3, check.LEAST_BLOCK)))
def test_the_checker_says_what_all_pairs_say(
    given_: tuple[list[Buffer], list[int]], block: int
) -> None:
    buffers, offsets = given_
    wrong = wrong_pairs(buffers, offsets)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(check, "LEAST_BLOCK", block)
        _agrees(buffers, offsets, wrong)


def _agrees(buffers: list[Buffer], offsets: list[int], wrong: set[frozenset[str]]) -> None:
    if not wrong:
        check_plan(buffers, offsets)
        return
    with pytest.raises(CheckError, match="share bytes") as error:
        check_plan(buffers, offsets)
    assert any(all(f"{name!r}" in str(error.value) for name in pair) for pair in wrong)


def test_one_buffer_moved_among_many_is_found() -> None:
    buffers = trace(3_000)
    made = plan(buffers, options=PlanOptions(steps=1_000))
    check_plan(buffers, made.offsets)
    for moved in range(0, len(buffers), 97):
        offsets = list(made.offsets)
        offsets[moved] = max(0, offsets[moved] - 1) or offsets[moved] + 1
        wrong = {
            pair
            for other in range(len(buffers))
            if other != moved
            for pair in wrong_pairs(
                [buffers[moved], buffers[other]], [offsets[moved], offsets[other]]
            )
        }
        if wrong:
            with pytest.raises(CheckError):
                check_plan(buffers, offsets)
        else:
            check_plan(buffers, offsets)


@pytest.mark.parametrize("offset", [-1, 2**62, 2**80])
def test_an_offset_that_no_memory_has_is_named(offset: int) -> None:
    with pytest.raises(CheckError, match=f"buffer 'b': its offset {offset} is not in"):
        check_plan([Buffer("a", 0, 1, 4), Buffer("b", 0, 1, 4)], [0, offset])
