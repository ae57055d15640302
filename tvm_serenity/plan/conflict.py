"""Explains why no placement fits, by a minimal set of buffers that cannot be placed together.

If any one buffer is removed from the set, the others can be placed. The search removes blocks of
buffers, of smaller and smaller size, as long as it is proved that the remaining buffers do not fit.
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
    """Return the names of buffers that together do not fit ``capacity``, and whether it is minimal.

    It must be proved that all ``buffers`` together do not fit. After ``seconds``, the smallest set
    so far is returned.
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
    """Return buffers that exceed the capacity at one step, largest last, or else all buffers."""
    problem = prepare(buffers, options.alignment)
    for live in _sections(problem):
        if too_large := _too_much(problem, live, capacity):
            return [buffers[problem.index[i]] for i in too_large]
    listed = list(buffers)
    chosen = (listed[i] for i in problem.index)
    return sorted(chosen, key=lambda b: b.size_bytes * (b.upper - b.lower))


def _too_much(problem: PlacementProblem, live: Sequence[int], capacity: int) -> Sequence[int]:
    """Return the largest buffers of a section, as few as exceed the capacity; empty if none do."""
    ordered = sorted(live, key=problem.plain.size.__getitem__)
    counts = range(1, len(ordered) + 1)

    def exceed(count: int) -> bool:
        return section_bound(problem, ordered[-count:]) > capacity

    fewest = bisect_left(counts, True, key=exceed)
    return ordered[-counts[fewest] :] if fewest < len(counts) else ()


def _sections(problem: PlacementProblem) -> Iterator[Sequence[int]]:
    """Yield the live set of the section with the most bytes, then of the other sections.

    If there are many buffers, only the first one is yielded.
    """
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
