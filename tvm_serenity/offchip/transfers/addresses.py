"""Addresses in fast memory for what a policy keeps there, moved only where no gap is large enough.

A policy counts bytes: what it keeps fits by size, but perhaps not in one gap. The planner looks for
addresses that need no move. Where it finds none within the capacity, residencies are placed in
order of time, each in the smallest gap, and neighbours slide together where no gap is large enough.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from tvm_serenity.plan import Buffer, PlanOptions, plan

PLAN_STEPS = 200_000
"""Work of the planner; a residency is moved where it finds no placement until then."""


@dataclass(frozen=True, slots=True)
class Residency:
    """Bytes that are in fast memory from before operator ``start`` of an order to before ``stop``.

    ``size_bytes`` is a multiple of the alignment. ``block``: the block of the trace, -1 for a
    workspace.
    """

    block: int
    start: int
    stop: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Relocation:
    """Residency ``index`` moves to ``address`` before operator ``before`` of the order."""

    before: int
    index: int
    address: int


@dataclass(frozen=True)
class Addresses:
    """The first address of each residency, and where it moves later, in time order."""

    first: tuple[int, ...]
    relocations: tuple[Relocation, ...]
    arena_bytes: int


def addresses_of(
    residencies: Sequence[Residency],
    capacity: int,
    alignment: int,
    loaded: Collection[int] = (),
) -> Addresses:
    """Return addresses below ``capacity``; at each step all that is resident fits by size.

    Residencies ``loaded``, by index, have their bytes free one operator earlier if no other
    needs them. Relocations of one step are listed so that each finds its bytes free, or its own.
    """
    options = PlanOptions(enough_bytes=capacity, steps=PLAN_STEPS, time_limit_s=None)
    earlier = _earlier(residencies, loaded, capacity)
    for tried in [residencies] if earlier == list(residencies) else [earlier, residencies]:
        buffers = [
            Buffer(f"{i}", one.start, one.stop, one.size_bytes, alignment)
            for i, one in enumerate(tried)
        ]
        found = plan(buffers, options=options)
        if found.arena_bytes <= capacity:
            return Addresses(tuple(found.offsets), (), found.arena_bytes)
    return _sliding(residencies, capacity)


def _earlier(
    residencies: Sequence[Residency], loaded: Collection[int], capacity: int
) -> list[Residency]:
    """Return the residencies, those of ``loaded`` one operator earlier where that fits by size."""
    used = [0] * (1 + max((one.stop for one in residencies), default=0))
    for one in residencies:
        for place in range(one.start, one.stop):
            used[place] += one.size_bytes
    found = list(residencies)
    for index in sorted(loaded):
        one = residencies[index]
        before = one.start - 1
        if before >= 0 and used[before] + one.size_bytes <= capacity:
            used[before] += one.size_bytes
            found[index] = replace(one, start=before)
    return found


def _sliding(residencies: Sequence[Residency], capacity: int) -> Addresses:
    """Place in order of time; neighbours slide down where no gap is large enough."""
    first, now = [0] * len(residencies), dict[int, int]()
    relocations: list[Relocation] = []
    listed = sorted(
        range(len(residencies)), key=lambda i: (residencies[i].start, -_length(i, residencies))
    )
    for index in listed:
        one = residencies[index]
        now = {i: at for i, at in now.items() if residencies[i].stop > one.start}
        placed = sorted((at, i) for i, at in now.items() if residencies[i].size_bytes)
        address = _smallest_gap(placed, residencies, one.size_bytes, capacity)
        if address is None:
            begin, end = _cheapest_run(placed, residencies, one.size_bytes, capacity)
            address = _end(placed, begin - 1, residencies)
            for at, i in placed[begin:end]:
                if at != address:
                    # bytes that arrive in the same step are not there yet: their place changes
                    if residencies[i].start == one.start:
                        first[i] = address
                    else:
                        relocations.append(Relocation(one.start, i, address))
                    now[i] = address
                address += residencies[i].size_bytes
        first[index] = now[index] = address
    moved = [r.address + residencies[r.index].size_bytes for r in relocations]
    ends = [at + one.size_bytes for at, one in zip(first, residencies, strict=True)]
    return Addresses(tuple(first), tuple(relocations), max([*ends, *moved], default=0))


def _length(index: int, residencies: Sequence[Residency]) -> int:
    return residencies[index].stop - residencies[index].start


def _end(placed: Sequence[tuple[int, int]], place: int, residencies: Sequence[Residency]) -> int:
    """Return the end of the residency at ``place``; 0 before the first one."""
    return 0 if place < 0 else placed[place][0] + residencies[placed[place][1]].size_bytes


def _smallest_gap(
    placed: Sequence[tuple[int, int]], residencies: Sequence[Residency], size: int, capacity: int
) -> int | None:
    """Return the start of the smallest gap of ``size`` bytes or more; None without one."""
    gaps, end = [], 0
    for at, i in [*placed, (capacity, -1)]:
        if at - end >= size:
            gaps.append((at - end, end))
        end = at + (residencies[i].size_bytes if i >= 0 else 0)
    return min(gaps)[1] if gaps else None


def _cheapest_run(
    placed: Sequence[tuple[int, int]], residencies: Sequence[Residency], size: int, capacity: int
) -> tuple[int, int]:
    """Return the run of neighbours that frees ``size`` bytes behind it by sliding, fewest bytes."""
    best: tuple[int, int, int] | None = None
    for begin in range(len(placed)):
        held = moved = 0
        floor = _end(placed, begin - 1, residencies)
        for end in range(begin, len(placed)):
            at, i = placed[end]
            moved += residencies[i].size_bytes * (at != floor + held)
            held += residencies[i].size_bytes
            ceiling = placed[end + 1][0] if end + 1 < len(placed) else capacity
            if ceiling - floor - held >= size and (best is None or moved < best[0]):
                best = moved, begin, end + 1
    assert best is not None, "what is resident exceeds the capacity"
    return best[1], best[2]
