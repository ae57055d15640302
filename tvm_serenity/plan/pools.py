"""Assigns live ranges to memory pools, as TVM's graph executor does, instead of offsets.

A pool holds one live range at a time and is as large as its largest range. The objective is the sum
of the pool sizes; the peak of live memory is a lower bound. The methods are:

``first_come``  in order of time: a range gets the smallest free pool in which it fits; else the
                largest free pool grows; else there is a new pool. A pool is not used if its size
                and the range's differ more than 16-fold. This is TVM's own planner.
``by_size``     largest range first, to the pool with the least waste (Pisarchyk and Lee, Efficient
                Memory Management for Deep Neural Net Inference, 2020, section 4, "greedy by size").
``by_breadth``  as ``by_size``, but in the order of the largest live bytes during a range.

``share`` improves the best of these results by random changes. The result is deterministic.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tvm_serenity.errors import CheckError
from tvm_serenity.memory import LiveRange

TVM_RANGE = 16
ROUNDS = 1_000


@dataclass(frozen=True)
class Pools:
    """An assignment of live ranges to pools.

    ``pool_of``: the pool of each range. ``sizes``: the bytes of each pool.
    """

    pool_of: tuple[int, ...]
    sizes: tuple[int, ...]

    @property
    def total_bytes(self) -> int:
        """The sum of the pools' sizes in bytes."""
        return sum(self.sizes)


def share(ranges: Sequence[LiveRange], rounds: int = ROUNDS, seed: int = 0) -> Pools:
    """Return the best assignment of ``ranges`` to pools that the methods and the search find."""
    best = min((method(ranges) for method in METHODS.values()), key=lambda p: p.total_bytes)
    return _improved(ranges, best, rounds, random.Random(seed))


def first_come(ranges: Sequence[LiveRange]) -> Pools:
    """Return the assignment of TVM's graph memory planner."""
    sizes: list[int] = []
    pool_of = [-1] * len(ranges)
    free: list[int] = []
    ends: dict[int, list[int]] = {}
    for i in sorted(range(len(ranges)), key=lambda i: (ranges[i].start, i)):
        item = ranges[i]
        for step in sorted(s for s in ends if s <= item.start):
            free += ends.pop(step)
        least, most = item.size_bytes // TVM_RANGE, item.size_bytes * TVM_RANGE
        near = [p for p in free if least <= sizes[p] <= most]
        large = [p for p in near if sizes[p] >= item.size_bytes]
        if large:
            pool = min(large, key=lambda p: (sizes[p], free.index(p)))
        elif near:
            pool = max(near, key=lambda p: (sizes[p], free.index(p)))
        else:
            pool = len(sizes)
            sizes.append(0)
            free.append(pool)
        free.remove(pool)
        sizes[pool] = max(sizes[pool], item.size_bytes)
        pool_of[i] = pool
        ends.setdefault(item.stop, []).append(pool)
    return Pools(tuple(pool_of), tuple(sizes))


def by_size(ranges: Sequence[LiveRange]) -> Pools:
    """Return the assignment that places the largest ranges first."""
    order = sorted(range(len(ranges)), key=lambda i: (-ranges[i].size_bytes, ranges[i].start, i))
    return _placed(ranges, order)


def by_breadth(ranges: Sequence[LiveRange]) -> Pools:
    """Return the assignment that places the ranges at the steps with the most live bytes first."""
    steps = max((r.stop for r in ranges), default=0)
    live = [sum(r.size_bytes for r in ranges if r.start <= t < r.stop) for t in range(steps)]
    breadth = [max(live[r.start : r.stop], default=0) for r in ranges]
    order = sorted(range(len(ranges)), key=lambda i: (-breadth[i], -ranges[i].size_bytes, i))
    return _placed(ranges, order)


METHODS: Mapping[str, Callable[[Sequence[LiveRange]], Pools]] = {
    "first_come": first_come,
    "by_size": by_size,
    "by_breadth": by_breadth,
}


def check_pools(ranges: Sequence[LiveRange], pools: Pools) -> None:
    """Raise :class:`CheckError` if two ranges of a pool are live at once, or one exceeds the pool.

    The check compares all pairs, and shares no code with the methods.
    """
    for i, (item, pool) in enumerate(zip(ranges, pools.pool_of, strict=True)):
        if item.size_bytes > pools.sizes[pool]:
            raise CheckError(
                f"range {item.name!r} has {item.size_bytes} bytes, but its pool {pool} has only "
                f"{pools.sizes[pool]} bytes"
            )
        for other, its in zip(ranges[:i], pools.pool_of, strict=False):
            if its == pool and not (other.stop <= item.start or item.stop <= other.start):
                raise CheckError(
                    f"ranges {item.name!r} and {other.name!r} are live at the same time "
                    f"and share pool {pool}, which holds one range at a time"
                )


def _overlap(one: LiveRange, two: LiveRange) -> bool:
    return one.start < two.stop and two.start < one.stop


def _placed(ranges: Sequence[LiveRange], order: Sequence[int]) -> Pools:
    """Return the assignment that gives each range, in ``order``, the pool with the least waste."""
    members: list[list[int]] = []
    for i in order:
        item = ranges[i]
        fitting = [
            (max(item.size_bytes - size, 0), abs(size - item.size_bytes), p)
            for p, pool in enumerate(members)
            if not any(_overlap(item, ranges[j]) for j in pool)
            for size in [max(ranges[j].size_bytes for j in pool)]
        ]
        if fitting:
            members[min(fitting)[2]].append(i)
        else:
            members.append([i])
    return _pools(ranges, members)


def _pools(ranges: Sequence[LiveRange], members: Sequence[Sequence[int]]) -> Pools:
    members = [m for m in members if m]
    pool_of = [-1] * len(ranges)
    for p, pool in enumerate(members):
        for i in pool:
            pool_of[i] = p
    return Pools(tuple(pool_of), tuple(max(ranges[i].size_bytes for i in m) for m in members))


def _improved(ranges: Sequence[LiveRange], best: Pools, rounds: int, rng: random.Random) -> Pools:
    """Return the best assignment over random changes of the placement order."""
    steps = max((r.stop for r in ranges), default=0)
    bound = max(
        (sum(r.size_bytes for r in ranges if r.start <= t < r.stop) for t in range(steps)),
        default=0,
    )
    order = sorted(range(len(ranges)), key=lambda i: (-ranges[i].size_bytes, ranges[i].start, i))
    current = _placed(ranges, order).total_bytes
    for _ in range(rounds if len(ranges) > 1 else 0):
        if best.total_bytes == bound:
            break
        moved = list(order)
        a, b = rng.randrange(len(moved)), rng.randrange(len(moved))
        moved.insert(b, moved.pop(a))
        tried = _placed(ranges, moved)
        if tried.total_bytes <= current:
            order, current = moved, tried.total_bytes
            best = min(best, tried, key=lambda p: p.total_bytes)
    return best
