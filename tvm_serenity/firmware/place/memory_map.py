"""The memory of a board, and the placement of arenas in it.

The largest region of data memory is the *main* region: it holds the stack and the data of the C
library beside its arena. The arena lies in the main region if it fits, else in another region, else
its tensors are spread over all regions.
"""

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from tvm_serenity.boards import Board, MemoryRegion
from tvm_serenity.errors import InputError
from tvm_serenity.memory import LiveRange
from tvm_serenity.options.memory import LIBRARY_BYTES, STACK_BYTES
from tvm_serenity.plan import Buffer, Plan, PlanOptions, Region, plan
from tvm_serenity.search.outcome import Outcome

NO_DATA = ("flash", "itcm", "psram")
"""Kinds of memory that hold no tensors, unless a network is streamed from there."""
SPEEDS = {"dtcm": 0, "ccm": 0, "sram": 1, "psram": 2}
"""The rank of each kind of memory for tensors, the fastest kinds first."""


@dataclass(frozen=True)
class Room:
    """A region, and the bytes that an arena may take in it."""

    region: MemoryRegion
    arena_bytes: int


def rooms(board: Board, stack_bytes: int = STACK_BYTES) -> tuple[Room, ...]:
    """Return the regions of ``board`` for tensors, the main region first."""
    usable = [r for r in board.regions if r.kind not in NO_DATA]
    ordered = sorted(usable, key=lambda r: (-r.size_bytes, r.address))
    main, *others = ordered
    left = max(main.size_bytes - stack_bytes - LIBRARY_BYTES, 0)
    return (Room(main, left), *(Room(r, r.size_bytes) for r in others))


def rooms_with(board: Board, stack_bytes: int, names: Collection[str]) -> tuple[Room, ...]:
    """Return ``rooms`` and, behind them, other regions of ``names``."""
    found = rooms(board, stack_bytes)
    known = {one.region.name for one in found}
    others = (r for r in board.regions if r.name in names and r.name not in known)
    return (*found, *(Room(r, r.size_bytes) for r in others))


def fast_and_slow(board: Board, stack_bytes: int = STACK_BYTES) -> tuple[Room, Room]:
    """Return the memory to compute in and the slower one that tensors are streamed from.

    The slow one is the largest region of the slowest kind, the fast one the largest region of a
    faster kind. Raises :class:`InputError` if all memory for data is of one kind.
    """
    found = rooms_with(board, stack_bytes, [r.name for r in board.regions if r.kind in SPEEDS])
    slowest = max(SPEEDS[one.region.kind] for one in found)
    slow = [one for one in found if SPEEDS[one.region.kind] == slowest]
    fast = [one for one in found if SPEEDS[one.region.kind] < slowest]
    if not fast:
        raise InputError(
            f"--fast-memory: {board.name} has no second, slower memory to stream tensors from; "
            "name a board with one, or add its region (kind psram) to the board's .toml file"
        )
    return max(fast, key=_room_bytes), max(slow, key=_room_bytes)


def slower_memory(board: Board) -> str | None:
    """Return the region that tensors can be streamed from; None for a board without one."""
    try:
        return fast_and_slow(board)[1].region.name
    except InputError:
        return None


def _room_bytes(room: Room) -> int:
    return room.arena_bytes


def largest(room: Sequence[Room]) -> int:
    """Return the maximum bytes of one arena."""
    return max(one.arena_bytes for one in room)


@dataclass(frozen=True)
class MemoryMap:
    """The place of every live range: a region and an offset; ``fits``: all are within the regions.

    ``proved``: they fit, or it is proved that no placement fits.
    """

    ranges: tuple[LiveRange, ...]
    regions: tuple[str, ...]
    offsets: tuple[int, ...]
    arena_bytes: dict[str, int]
    fits: bool
    proved: bool = True


def place(
    ranges: Sequence[LiveRange],
    whole: Plan,
    room: Sequence[Room],
    alignment: int,
    time_limit_s: float | None = 10.0,
) -> MemoryMap:
    """Return the placement of ``ranges`` in ``room``; ``whole``: their plan in one arena.

    If nothing fits, the result is that arena in the main region.
    """
    kept = tuple(ranges)
    for one in room:
        if whole.arena_bytes <= one.arena_bytes:
            return _single(kept, whole, one.region.name, True)
    proved = whole.outcome is Outcome.OPTIMAL or whole.lower_bound_bytes > largest(room)
    if len(room) > 1 and whole.lower_bound_bytes <= sum(one.arena_bytes for one in room):
        planned = _planned(kept, room, [alignment] * len(kept), time_limit_s)
        if found := _over_all(kept, planned):
            return found
        proved = planned.outcome is Outcome.INFEASIBLE
    return replace(_single(kept, whole, room[0].region.name, False), proved=proved)


def spread(
    ranges: Sequence[LiveRange],
    room: Sequence[Room],
    alignments: Sequence[int],
    time_limit_s: float | None,
) -> MemoryMap | None:
    """Return ``ranges`` spread over all of ``room``, None if no placement is found."""
    return _over_all(ranges, _planned(ranges, room, alignments, time_limit_s))


def _planned(
    ranges: Sequence[LiveRange],
    room: Sequence[Room],
    alignments: Sequence[int],
    time_limit_s: float | None,
) -> Plan:
    buffers = [
        Buffer(f"{i}", r.start, r.stop, r.size_bytes, alignment)
        for i, (r, alignment) in enumerate(zip(ranges, alignments, strict=True))
    ]
    regions = tuple(Region(one.region.name, one.arena_bytes) for one in room)
    return plan(buffers, options=PlanOptions(regions=regions, time_limit_s=time_limit_s))


def _over_all(ranges: Sequence[LiveRange], found: Plan) -> MemoryMap | None:
    if not found.offsets:
        return None
    sizes = {name: size for name, size in found.region_bytes.items() if size}
    return MemoryMap(tuple(ranges), tuple(found.regions), tuple(found.offsets), sizes, True)


def with_unread(
    placed: MemoryMap,
    unread: Sequence[LiveRange],
    given: AbstractSet[int],
    main: Room,
    alignment: int,
) -> MemoryMap:
    """Return ``placed`` with places for the inputs that no operator reads.

    They are written together with the other inputs, the tensors ``given``, and may be overwritten
    from the first step on, so they rarely need further memory.
    """
    name = main.region.name
    found = zip(placed.ranges, placed.regions, placed.offsets, strict=True)
    taken = [(o, o + r.size_bytes) for r, n, o in found if n == name and given & set(r.tensors)]
    offsets = []
    for one in unread:
        starts = (-(-end // alignment) * alignment for end in (0, *(end for _, end in taken)))
        free = (s for s in starts if all(s + one.size_bytes <= a or b <= s for a, b in taken))
        offsets.append(min(free))
        taken.append((offsets[-1], offsets[-1] + one.size_bytes))
    ends = [o + r.size_bytes for r, o in zip(unread, offsets, strict=True)]
    arena = max([placed.arena_bytes.get(name, 0), *ends])
    return MemoryMap(
        (*placed.ranges, *unread),
        (*placed.regions, *(name for _ in unread)),
        (*placed.offsets, *offsets),
        {**placed.arena_bytes, name: arena} if arena else placed.arena_bytes,
        placed.fits and arena <= main.arena_bytes,
    )


def _single(ranges: tuple[LiveRange, ...], whole: Plan, name: str, fits: bool) -> MemoryMap:
    names = (name,) * len(ranges)
    return MemoryMap(ranges, names, tuple(whole.offsets), {name: whole.arena_bytes}, fits)
