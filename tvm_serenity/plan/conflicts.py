"""Placing buffers of which only the conflicts are known, where these are no live ranges.

A buffer may be live several times (the scratch of a kernel that is called twice): conflicts then
form no interval graph, and the planners over live ranges would ask for too much. Here a placement
is an order: each buffer at the lowest offset free of its neighbours. Going through any placement by
its offsets gives one that is nowhere higher, so no start is ever made worse; then the order of a
buffer at the top and of one below it is exchanged, as long as that does not raise the arena.
"""

import random
from collections.abc import Collection, Sequence

from tvm_serenity.errors import CheckError

ROUNDS = 1_500


def place_by_conflicts(
    sizes: Sequence[int],
    alignments: Sequence[int],
    conflicts: Sequence[Collection[int]],
    starts: Sequence[Sequence[int]] = (),
    rounds: int = ROUNDS,
    seed: int = 0,
) -> tuple[int, ...]:
    """Return an offset for each buffer; never above the arena of any placement in ``starts``.

    ``conflicts`` are symmetric: buffer i must share no byte with those of ``conflicts[i]``.
    Deterministic.
    """
    everyone = range(len(sizes))
    orders = [sorted(everyone, key=lambda i: (offsets[i], i)) for offsets in starts]
    orders.append(sorted(everyone, key=lambda i: (-sizes[i], i)))
    orders.append(sorted(everyone, key=lambda i: (-len(conflicts[i]), -sizes[i], i)))

    def placed(order: Sequence[int]) -> tuple[int, list[int]]:
        offsets = _first_fit(sizes, alignments, conflicts, order)
        return max((offsets[i] + sizes[i] for i in everyone), default=0), offsets

    (arena, offsets), order = min(((placed(o), o) for o in orders), key=lambda found: found[0][0])
    best, bound = (arena, offsets), max(sizes, default=0)
    rng = random.Random(seed)
    for _ in range(rounds):
        if best[0] == bound:
            break
        moved = _exchanged(order, offsets, sizes, conflicts, arena, rng)
        found = placed(moved)
        if found[0] <= arena:
            (arena, offsets), order = found, moved
            best = min(best, found, key=lambda f: f[0])
    return tuple(best[1])


def check_conflicts(
    sizes: Sequence[int], conflicts: Sequence[Collection[int]], offsets: Sequence[int]
) -> None:
    """Raise :class:`CheckError` where two buffers that conflict share a byte."""
    for i, near in enumerate(conflicts):
        for j in near:
            if offsets[i] < offsets[j] + sizes[j] and offsets[j] < offsets[i] + sizes[i]:
                raise CheckError(f"buffers {i} and {j} share bytes")


def _first_fit(
    sizes: Sequence[int],
    alignments: Sequence[int],
    conflicts: Sequence[Collection[int]],
    order: Sequence[int],
) -> list[int]:
    offsets = [-1] * len(sizes)
    for i in order:
        at = 0
        for start, size in sorted((offsets[j], sizes[j]) for j in conflicts[i] if offsets[j] >= 0):
            if at + sizes[i] <= start:
                break
            at = max(at, -(-(start + size) // alignments[i]) * alignments[i])
        offsets[i] = at
    return offsets


def _exchanged(
    order: Sequence[int],
    offsets: Sequence[int],
    sizes: Sequence[int],
    conflicts: Sequence[Collection[int]],
    arena: int,
    rng: random.Random,
) -> list[int]:
    """The order with a buffer at the top, or one under it, exchanged for a neighbour before it."""
    place = {v: i for i, v in enumerate(order)}
    top = rng.choice([i for i in order if offsets[i] + sizes[i] == arena])
    if conflicts[top] and rng.random() < 0.5:
        top = rng.choice(sorted(conflicts[top]))
    earlier = [j for j in sorted(conflicts[top]) if place[j] < place[top]] or list(order)
    moved = list(order)
    at, other = place[top], place[rng.choice(earlier)]
    if rng.random() < 0.5:
        moved[at], moved[other] = moved[other], moved[at]
    else:
        moved.insert(other, moved.pop(at))
    return moved
