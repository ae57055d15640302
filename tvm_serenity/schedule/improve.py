"""Better orders and bounds for instances that one exhaustive search cannot settle."""

from collections.abc import Iterator

from tvm_serenity.schedule.instance import profile, segment
from tvm_serenity.schedule.limits import Run
from tvm_serenity.schedule.probe import DENSE_OPS, Part, by_need, core_of
from tvm_serenity.schedule.windows import window

SEGMENT_OPS = (16, 32, 64, 128, 256)
SEGMENT_STATES = 500
WINDOW_OPS = (32, 64, 128, 256, 512, 1024)
WINDOW_PLACES = 3
WINDOW_PROBES = 8


def reorder_segments(part: Part, run: Run, states: int = SEGMENT_STATES) -> bool:
    """Re-order segments around the peak until none gets below it (R10); whether it helped.

    Each segment is an exact instance: every peak in it is removed at once, or cannot be within
    ``states`` states.
    """
    instance, order = part.instance, list(part.order)
    before = part.peak
    found = profile(instance, order)
    live, need = list(found.live), list(found.need)
    position = [0] * len(order)
    for step, op in enumerate(order):
        position[op] = step
    while run.seconds_left > 0:
        peak = max(need)
        if peak <= part.bound:
            break
        step = need.index(peak)
        for first, last in _segments(step, len(order)):
            run.count("segments")
            piece, ops = segment(instance, order, position, first, last)
            offset = live[first] - piece.start_bytes
            answer = core_of(piece, run.rules).decide(
                peak - 1 - offset, states, run.seconds_left, run.memory_bytes, run.reporter
            )
            run.states += answer[3]
            if answer[0] != "feasible":
                continue
            local = profile(piece, answer[1])
            order[first:last] = [ops[i] for i in answer[1]]
            live[first : last + 1] = [offset + b for b in local.live]
            need[first:last] = [offset + b for b in local.need]
            for i in range(first, last):
                position[order[i]] = i
            break
        else:
            break
    part.offer(order)
    return part.peak < before


def relax_windows(part: Part, run: Run, states: int, floor: int, ceiling: int | None) -> None:
    """Bounds from relaxed windows around the peak (R9), smallest first."""
    need = profile(part.instance, part.order).need
    count = len(need)
    position = [0] * count
    for step, op in enumerate(part.order):
        position[op] = step
    for length in WINDOW_OPS:
        if length >= min(count, DENSE_OPS):
            return
        for step in _peaks(need, length):
            if part.closed(floor, ceiling) or run.seconds_left <= 0:
                return
            first = max(0, min(step - length // 2, count - length))
            bound_window(part, run, (position, first, first + length), states, ceiling)


def bound_window(
    part: Part,
    run: Run,
    place: tuple[list[int], int, int],
    states: int,
    ceiling: int | None,
) -> None:
    """The bound of one relaxed window: its least peak, or what is proved of it in a few probes."""
    position, first, last = place
    relaxed, ops = window(part.instance, part.order, position, first, last)
    core = core_of(relaxed, run.rules)
    run.count("windows")

    def prove(bound: int) -> None:
        proof = {"kind": "window", "ops": list(ops), "budget_bytes": bound - 1}
        part.prove(min(bound, part.peak), proof)

    local = {op: i for i, op in enumerate(ops)}
    steps = [local[op] for op in part.order[first:last]]
    for op, need in by_need(relaxed, steps):
        if need <= part.bound:
            break
        prove(core.root_cut(op)[0])
    # Not feasible below `low`; nothing more to learn from `high` on, where `high` is either
    # feasible or too hard.
    low, high, hard = part.bound, part.peak, False
    for _ in range(WINDOW_PROBES):
        if low >= high or run.seconds_left <= 0 or (ceiling is not None and low > ceiling):
            return
        budget = (low + high - 1) // 2 if hard else high - 1
        status, order, following, done = core.decide(
            budget, states, run.seconds_left, run.memory_bytes, run.reporter
        )
        run.states += done
        if status == "infeasible":
            low = min(following, high)
            prove(low)
        elif status == "feasible":
            high, hard = profile(relaxed, order).peak, False
        else:
            high, hard = budget, True


def _segments(step: int, count: int) -> Iterator[tuple[int, int]]:
    """Segments that hold a step, small ones first; each length early, centred and late."""
    seen = set()
    for length in SEGMENT_OPS:
        for share in (2, 4, 1):
            first = max(0, min(step - length * share // 5, count - length))
            place = (first, min(count, first + length))
            if place not in seen:
                seen.add(place)
                yield place


def _peaks(need: tuple[int, ...], length: int) -> list[int]:
    """The highest steps, at least half a window apart."""
    chosen: list[int] = []
    for step in sorted(range(len(need)), key=lambda i: (-need[i], i)):
        if all(abs(step - other) >= length // 2 for other in chosen):
            chosen.append(step)
            if len(chosen) == WINDOW_PLACES:
                break
    return chosen
