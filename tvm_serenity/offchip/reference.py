"""The simulator in plain Python, with the native one's signature and results (``simulate.cpp``).

``decisions`` yields what a policy decides, one block at a time; ``simulate`` adds up its bytes.
"""

import time
from collections.abc import Callable, Iterator
from enum import Enum
from math import inf
from typing import NamedTuple

from tvm_serenity.offchip.accesses import READ, WRITE, Bytes8, Ints, Longs

Row = tuple[int, int, int, int, int]

BELADY, BELADY_WRITES, LRU, FIFO, RR = range(5)
_SLOTS = 2**31


class Action(Enum):
    """What happens to a block; a store keeps it resident, an eviction or a drop does not."""

    LOAD = "load"
    CREATE = "create"  # becomes resident without a transfer: it is written first
    STORE = "store"
    EVICT = "evict"
    DROP = "drop"  # dead
    DIRECT = "direct"  # accessed where it is, in slow memory


class Decision(NamedTuple):
    """What happens to a block while a group runs."""

    group: int
    action: Action
    block: int


class _Chip:
    """The on-chip memory: dirtiness, last use, next use, arrival and slot of each block."""

    def __init__(self, policy: int) -> None:
        self.policy = policy
        self.dirty: dict[int, bool] = {}
        self.next_use: dict[int, int] = {}
        self.last_use: dict[int, int] = {}
        self.came: dict[int, int] = {}
        self.slot: dict[int, int] = {}
        self.pointer = 0

    def enter(self, block: int, now: int) -> None:
        self.dirty[block] = False
        self.came[block] = now
        if self.policy == RR:
            taken = set(self.slot.values())
            self.slot[block] = next(s for s in range(_SLOTS) if s not in taken)

    def leave(self, block: int) -> None:
        for table in (self.dirty, self.next_use, self.last_use, self.came, self.slot):
            table.pop(block, None)

    def victim(self, pinned: set[int], now: int) -> int:
        free = [b for b in self.dirty if b not in pinned]
        choose: dict[int, Callable[[], int]] = {
            BELADY: lambda: max(free, key=self.next_use.__getitem__),
            LRU: lambda: min(free, key=self.last_use.__getitem__),
            FIFO: lambda: min(free, key=self.came.__getitem__),
            RR: lambda: self._round(free),
            BELADY_WRITES: lambda: self._write_aware(free, now),
        }
        return choose[self.policy]()

    def _round(self, free: list[int]) -> int:
        block = min(free, key=lambda b: (self.slot[b] < self.pointer, self.slot[b]))
        self.pointer = self.slot[block] + 1
        return block

    def _write_aware(self, free: list[int], now: int) -> int:
        def gain(block: int) -> tuple[int, bool]:
            distance = self.next_use[block] - now
            return (distance, False) if self.dirty[block] else (2 * distance, True)

        return max(free, key=gain)


def simulate(
    block: Ints,
    kind: Bytes8,
    size: Longs,
    kept: Bytes8,
    group_end: Longs,
    reserve: Longs,
    room_of: Longs,
    capacity: int,
    policy: int,
    seconds: float = inf,
) -> Row:
    """Return the bytes read, written, created, evicted and dropped; every group must fit.

    Raises :class:`TimeoutError` after ``seconds``.
    """
    moved = dict.fromkeys(Action, 0)
    sizes = size.tolist()
    for _, action, one in decisions(
        block, kind, kept, group_end, reserve, room_of, capacity, policy, seconds
    ):
        moved[action] += sizes[one]
    order = (Action.LOAD, Action.STORE, Action.CREATE, Action.EVICT, Action.DROP)
    read, written, created, evicted, dropped = (moved[action] for action in order)
    return read, written, created, evicted, dropped


def decisions(
    block: Ints,
    kind: Bytes8,
    kept: Bytes8,
    group_end: Longs,
    reserve: Longs,
    room_of: Longs,
    capacity: int,
    policy: int,
    seconds: float = inf,
) -> Iterator[Decision]:
    """Yield the decisions of a policy in time order; every group must fit.

    The stores and drops of dead blocks follow the accesses of their group. Raises
    :class:`TimeoutError` after ``seconds``.
    """
    deadline = time.monotonic() + seconds
    blocks, kinds, rooms = block.tolist(), kind.tolist(), room_of.tolist()
    following = _following(blocks)
    chip, used, begin = _Chip(policy), 0, 0
    ends = zip(group_end.tolist(), reserve.tolist(), strict=True)
    for group, (end, held) in enumerate(ends):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the simulation took more than its limit of {seconds:g} s")
        pinned = set(blocks[begin:end])
        for now in range(begin - 1, end):
            b = blocks[now] if now >= begin else -1
            new = b >= 0 and b not in chip.dirty
            wanted = held + (rooms[b] if new else 0)
            while used + wanted > capacity and (new or b < 0):
                out = chip.victim(pinned, max(now, begin))
                if chip.dirty[out]:
                    yield Decision(group, Action.STORE, out)
                yield Decision(group, Action.EVICT, out)
                used -= rooms[out]
                chip.leave(out)
            if new:
                yield Decision(group, Action.CREATE if kinds[now] == WRITE else Action.LOAD, b)
                used += rooms[b]
                chip.enter(b, now)
            if b >= 0:
                chip.dirty[b] |= kinds[now] != READ
                chip.last_use[b], chip.next_use[b] = now, following[now]
        for b in sorted(pinned):
            after = chip.next_use[b]
            last = after == len(blocks)
            if last or kinds[after] == WRITE:
                if last and bool(kept[b]) and chip.dirty[b]:
                    yield Decision(group, Action.STORE, b)
                yield Decision(group, Action.DROP, b)
                used -= rooms[b]
                chip.leave(b)
        begin = end


def _following(blocks: list[int]) -> list[int]:
    """Return, for each access, the next one to the same block, or the number of accesses."""
    result, seen = [len(blocks)] * len(blocks), dict[int, int]()
    for i in range(len(blocks) - 1, -1, -1):
        result[i] = seen.get(blocks[i], len(blocks))
        seen[blocks[i]] = i
    return result
