"""A network in bands of rows, in fast memory of a given size beside a larger, slower memory."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from tvm_serenity.firmware.c_names import identifier
from tvm_serenity.firmware.compile.compiled import Compiled
from tvm_serenity.firmware.compile.driver import NetworkCompiler
from tvm_serenity.firmware.compile.streamed import fast_room
from tvm_serenity.firmware.place import bands
from tvm_serenity.firmware.select.memories import in_two_memories, passes_of
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.rows.choose import Choice
from tvm_serenity.rows.divide import divide
from tvm_serenity.rows.limits import Limits
from tvm_serenity.rows.memories import Divided, Passes
from tvm_serenity.rows.network import Network
from tvm_serenity.rows.split import heights_of
from tvm_serenity.rows.stream import Streaming, stream
from tvm_serenity.rows.traffic_bound import forced_bytes
from tvm_serenity.rows.transfers import plan_of_rows
from tvm_serenity.search.deadline import seconds_left, within

HEIGHTS = 1, 2, 4, 8
"""Rows of a band that are tried, where none are given, while they move no more bytes."""
ATTEMPTS = 3
"""The most divisions that are placed for a height: a placement may need more than the peak."""
EFFORTS = 0.02, 1.0
"""Parts of the usual steps with which bands are ordered and placed until they fit: the order by
segments mostly does, and no smaller arena is asked for."""


@dataclass(frozen=True)
class _Found:
    """A network in two memories, ordered and placed; ``fits``: in the fast memory that is given."""

    made: Divided
    streaming: Streaming
    fits: bool

    @property
    def price(self) -> tuple[bool, int, int]:
        """Return what decides: whether it fits, the bytes in slow memory, the number of calls."""
        return not self.fits, self.made.total_bytes, len(self.streaming.schedule.order)


def streamed_by_rows(maker: NetworkCompiler) -> Compiled:
    """Return the network in bands in two memories, with the fewest bytes in the slow one.

    What is left of the fast memory is workspace of faster kernels. Bands have the rows that the
    settings say, else the most rows with the fewest bytes. Raises :class:`InputError` for a board
    with one memory, a size beyond its fast memory, or a network without rows.
    """
    settings, kernels = maker.settings, maker.rows()
    capacity, alignment = settings.fast_memory_bytes, maker.board.core.alignment_bytes
    assert capacity is not None
    fast, slow = fast_room(maker.board, settings)
    started = time.perf_counter()
    settings.notify("dividing the network between two memories")
    tried = _tried(kernels.network, passes_of(kernels), capacity, settings)
    best = min(tried, key=lambda one: one.price)
    streaming = best.streaming
    placed = bands.in_two_memories(streaming, fast.region.name, slow.region.name, alignment)
    slow_bytes = placed.slow.arena_bytes[slow.region.name]
    fits = best.fits and slow_bytes <= slow.arena_bytes
    found = in_two_memories(kernels, best.made, identifier(maker.name))
    seconds = time.perf_counter() - started
    chosen = Choice(streaming, fits, tuple(one.streaming for one in tried), seconds)
    made = maker.from_rows(
        found,
        chosen,
        replace(placed.memory, fits=fits),
        placed.fast,
        maker.program_of(found, streaming, placed.slow),
        {fast.region.name: capacity},
    )
    fast_bytes = made.placed.arena_bytes[fast.region.name]
    arenas = {**made.placed.arena_bytes, **placed.slow.arena_bytes}
    most = max(capacity, fast_bytes)  # more where it does not fit
    sizes, forced = (fast_bytes, slow_bytes), forced_bytes(kernels.network, most)
    plan = plan_of_rows(best.made, streaming, placed.homes, most, sizes, forced)
    return replace(made, placed=replace(made.placed, arena_bytes=arenas), transfers=plan)


def _tried(network: Network, passes: Passes, capacity: int, settings: Settings) -> Sequence[_Found]:
    """Return the network divided and placed, with the rows of the settings or some numbers."""
    limits, found = Limits.within(settings.time_limit_s), list[_Found]()
    with within(settings.time_limit_s):
        for rows in HEIGHTS if settings.bands is None else (settings.bands,):
            enough = (one.made.total_bytes for one in found if one.fits)
            most = min(enough, default=inf)
            more = list(_placed(network, rows, capacity, passes, limits, most))
            before = min((one.price for one in found), default=None)
            found += more
            after = min(one.price for one in found)
            if after == before or seconds_left() == 0:
                break
    return found


def _placed(
    network: Network, rows: int, capacity: int, passes: Passes, limits: Limits, most: float
) -> Iterator[_Found]:
    """Yield the network divided and placed; again with a lower peak while it does not fit.

    Nothing is placed that has more than ``most`` bytes in slow memory.
    """
    peak = capacity
    for _ in range(ATTEMPTS):
        made = divide(network, rows, peak, passes, most)
        if made.total_bytes > most:
            return
        heights = heights_of(made.network, rows)
        for effort in EFFORTS:
            streaming = stream(made.network, heights, limits=replace(limits, effort=effort))
            yield _Found(made, streaming, streaming.arena_bytes <= capacity)
            if streaming.arena_bytes <= capacity or seconds_left() == 0:
                return
        peak -= streaming.arena_bytes - capacity
        if peak <= 0:
            return
