"""Improves orders and bounds of instances that are too large for one exhaustive search."""

from collections.abc import Iterator, Sequence

import numpy as np

from tvm_serenity.graph.arrays import ints
from tvm_serenity.schedule.instance import (
    Instance,
    OrderProfile,
    backwards,
    peak_of_order,
    profile,
    reverse,
    segment,
)
from tvm_serenity.schedule.limits import SearchRun
from tvm_serenity.schedule.probe import DENSE_OPS, Part, ask, core_of, window_cuts
from tvm_serenity.schedule.windows import window

SEGMENT_OPS = (16, 32, 64, 128, 256, 512)
SEGMENT_STATES = 500
LARGE_SHIFT = 8
"""The first budget for a segment of a large order is the peak less its 256th part (2 ** -8)."""
WINDOW_OPS = (32, 64, 96, 128, 192, 256, 512)
WINDOW_PLACES = 3
WINDOW_PROBES = 6


def reorder_segments(part: Part, run: SearchRun, states: int = SEGMENT_STATES) -> bool:
    """Re-order segments of the best order around its peak until no segment lowers it (R10).

    Returns True if more time would not help: no segment lowered the peak, or the search ended
    before its time limit. Each segment is an exact instance, searched with up to ``states`` states.
    """
    before, segments = part.peak, _Segments(part)
    try:
        while run.seconds_left > 0 and segments.peak > part.bound:
            if not _lowered(segments, run, states):
                break
    finally:  # Store the improved order also after Ctrl-C.
        part.offer(segments.order)
    return run.seconds_left > 0 or part.peak == before


class _Segments:
    """An order and its profile; replacing a segment takes time proportional to its length."""

    def __init__(self, part: Part) -> None:
        self.instance, self.order = part.instance, list(part.order)
        steps = profile(self.instance, self.order)
        self.live, self.need = ints(steps.live), ints(steps.need)
        self.position = [0] * len(self.order)
        for step, op in enumerate(self.order):
            self.position[op] = step

    @property
    def peak(self) -> int:
        """The largest live bytes at any step."""
        return int(self.need.max())

    def replace(self, first: int, last: int, ops: list[int], local: OrderProfile) -> None:
        """Put ``ops`` at steps ``first`` to ``last - 1``; ``local`` is the segment's profile."""
        offset = int(self.live[first]) - local.live[0]
        self.order[first:last] = ops
        self.live[first : last + 1] = offset + ints(local.live)
        self.need[first:last] = offset + ints(local.need)
        for step, op in enumerate(ops, start=first):
            self.position[op] = step


def _lowered(segments: _Segments, run: SearchRun, states: int) -> bool:
    """Re-order one segment to lower the highest step; return whether a segment did.

    In a long order the first budget is further below the peak, because many steps are as high.
    """
    order, peak = segments.order, segments.peak
    step = int(segments.need.argmax())
    lower = peak - 1 - (peak >> LARGE_SHIFT if len(order) > DENSE_OPS else 0)
    either = len(order) > DENSE_OPS and run.rules["reverse"]
    for budget in dict.fromkeys((lower, peak - 1)):
        for first, last in _segments(step, len(order)):
            if run.seconds_left <= 0:
                return False
            run.count("segments")
            run.steps += last - first
            piece, ops = segment(segments.instance, order, segments.position, first, last)
            within = budget - (int(segments.live[first]) - piece.start_bytes)
            steps = _order_within(piece, within, run, states, either and not any(piece.in_place))
            if steps:
                segments.replace(first, last, [ops[i] for i in steps], profile(piece, steps))
                return True
    return False


def _order_within(
    piece: Instance, budget: int, run: SearchRun, states: int, either: bool
) -> list[int]:
    """Return an order with a peak of at most ``budget``, or an empty list.

    ``either``: search forward and backward.
    """
    for backward in (False, True) if either else (False,):
        core = core_of(reverse(piece) if backward else piece, run.rules)
        status, order, _ = ask(core, run, budget, states)
        if status == "feasible" and backward:
            run.count("segments_backward")
        if status in ("feasible", "infeasible"):
            return backwards(order) if backward else order
    return []


def relax_windows(
    part: Part, run: SearchRun, states: int, floor: int, ceiling: int | None, climb: bool
) -> None:
    """Raise the bound of ``part`` by relaxed windows around the peak (R9), small windows first.

    A search of up to ``states`` states decides whether a window has an order below the best peak.
    ``climb``: search for the least peak of windows that have one, and use windows at more places.
    """
    need = profile(part.instance, part.order).need
    count, ranked = len(need), highest_first(need)
    for length in WINDOW_OPS:
        if length >= min(count, DENSE_OPS):
            return
        hard = False
        for step in spaced_steps(ranked, length, WINDOW_PLACES if climb else 1):
            if part.closed(floor, ceiling) or run.seconds_left <= 0:
                return
            first = max(0, min(step - length // 2, count - length))
            hard |= bound_window(part, run, (first, first + length), states, climb)
        if hard and not climb:
            return


def bound_window(
    part: Part, run: SearchRun, place: tuple[int, int], states: int, climb: bool
) -> bool:
    """Raise the lower bound of ``part`` by its steps from ``place[0]`` to ``place[1]`` alone.

    Every order of the part contains these ops; the ops before and after them are relaxed away.
    Return whether the search of the window ended at its limit of ``states``.
    """
    first, last = place
    key = tuple(part.order[first:last])
    # The window's least peak is at least `low` and, unless `hard`, at most `high`.
    low, high = part.windows.get(key, (part.bound, part.peak))
    low, high, hard = max(low, part.bound), min(high, part.peak), False
    if low >= high or (high < part.peak and not climb):
        return False
    relaxed, ops = window(part.instance, part.order, part.lives, first, last)
    core = core_of(relaxed, run.rules)
    run.count("windows")
    run.steps += last - first
    if run.rules["root-cuts"]:
        for op, bound in window_cuts(core, relaxed, key, ops, part.bound):
            run.steps += len(ops)
            part.prove_window(bound, ops, {"op": op})
    low = max(low, part.bound)
    for _ in range(WINDOW_PROBES if climb else 1):
        if low >= high or run.seconds_left <= 0:
            break
        budget = (low + high - 1) // 2 if hard else high - 1
        status, order, following = ask(core, run, budget, states)
        if status == "infeasible":
            low = min(following, high)
            part.prove_window(low, ops)
        elif status == "feasible":
            high, hard = peak_of_order(relaxed, order), False
        else:
            high, hard = budget, True
    if not hard:
        part.windows[key] = (low, high)
    return hard


def highest_first(need: tuple[int, ...]) -> list[int]:
    """Return the indices of all steps by decreasing need; equal needs in order."""
    ranked: list[int] = np.argsort(-np.array(need, dtype=np.int64), kind="stable").tolist()
    return ranked


def spaced_steps(ranked: Sequence[int], length: int, places: int) -> list[int]:
    """Return the first ``places`` steps of ``ranked`` that are at least ``length / 2`` apart."""
    chosen: list[int] = []
    for step in ranked:
        if all(abs(step - other) >= length // 2 for other in chosen):
            chosen.append(step)
            if len(chosen) == places:
                break
    return chosen


def _segments(step: int, count: int) -> Iterator[tuple[int, int]]:
    """Yield segments that contain ``step``, short ones first.

    For each length, the step is near the segment's end, in its middle, and near its start.
    """
    seen = set()
    for length in SEGMENT_OPS:
        for share in (2, 4, 1):
            first = max(0, min(step - length * share // 5, count - length))
            place = (first, min(count, first + length))
            if place not in seen:
                seen.add(place)
                yield place
