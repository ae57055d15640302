"""Why nothing fits: a smallest-possible excuse, a set of buffers that cannot be placed together.

The set is irreducible: without any one of its buffers the rest can be placed. It is found by
leaving out blocks of buffers, halving the blocks, as long as what remains is proved impossible.
"""

import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tvm_serenity.plan.bound import section_bound
from tvm_serenity.plan.buffers import Buffer
from tvm_serenity.plan.fits import fits
from tvm_serenity.plan.problem import PlacementProblem, prepare
from tvm_serenity.plan.result import PlanOptions

_STEP_SECONDS = 0.5
_MANY = 20_000


def find_conflict(
    buffers: Sequence[Buffer], capacity: int, options: PlanOptions, seconds: float
) -> tuple[tuple[str, ...], bool]:
    """Names of buffers proved not to fit ``capacity`` together, and whether the set is minimal.

    ``buffers`` themselves must be proved not to fit. Out of time, the set so far is returned.
    """
    deadline = time.perf_counter() + seconds
    kept, minimal = _live_together(buffers, capacity, options), True
    size = max(1, len(kept) // 2)
    while size:
        start = 0
        while start < len(kept):
            if time.perf_counter() >= deadline:
                return tuple(b.name for b in kept), False
            rest = kept[:start] + kept[start + size :]
            verdict = _fits(rest, capacity, options, deadline)
            if verdict is False:
                kept = rest
            else:
                minimal = minimal and (verdict is True or size > 1)
                start += size
        size //= 2
    return tuple(b.name for b in kept), minimal


def _live_together(buffers: Sequence[Buffer], capacity: int, options: PlanOptions) -> list[Buffer]:
    """Buffers of a step that alone exceed the capacity, largest last; else all there are."""
    problem = prepare(buffers, options.alignment)
    for live in _sections(problem):
        if found := _too_much(problem, live, capacity):
            return [buffers[problem.index[i]] for i in found]
    made = list(buffers)
    chosen = (made[i] for i in problem.index)
    return sorted(chosen, key=lambda b: b.size_bytes * (b.upper - b.lower))


def _too_much(problem: PlacementProblem, live: Sequence[int], capacity: int) -> Sequence[int]:
    """The fewest of the largest buffers of a section whose bound exceeds the capacity, or none."""
    ordered = sorted(live, key=problem.plain.size.__getitem__)
    counts = range(1, len(ordered) + 1)

    def exceed(count: int) -> bool:
        return section_bound(problem, ordered[-count:]) > capacity

    fewest = bisect_left(counts, True, key=exceed)
    return ordered[-counts[fewest] :] if fewest < len(counts) else ()


def _sections(problem: PlacementProblem) -> Iterator[Sequence[int]]:
    """What is live in the fullest section, then of few buffers in each."""
    if problem.sections:
        yield problem.live_in(int(problem.load.argmax()))
    if len(problem.index) <= _MANY:
        yield from problem.live


def _fits(
    buffers: Sequence[Buffer], capacity: int, options: PlanOptions, deadline: float
) -> bool | None:
    names = {buffer.name for buffer in buffers}
    problem = prepare(
        [b if b.may_overlap in names else replace(b, may_overlap=None) for b in buffers],
        options.alignment,
    )
    left = min(_STEP_SECONDS, max(0.01, deadline - time.perf_counter()))
    return fits(problem, capacity, options, left)
