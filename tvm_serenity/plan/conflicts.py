"""Placement of buffers by their pairwise conflicts, for conflicts that are not live ranges.

A buffer may be live several times (the scratch of a kernel that is called twice). Conflicts then
form no interval graph, and planners over live ranges would need too much memory. Here a placement
is an order: each buffer goes to the lowest offset that is free of its neighbours. Re-placing the
buffers of any placement in order of their offsets moves none up, so no start gets worse. The search
then exchanges a buffer at the top with one below it, as long as the arena does not grow.
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
    """Return an offset for each buffer; the arena is never above that of a placement in ``starts``.

    ``conflicts`` are symmetric: buffer i must share no byte with the buffers in ``conflicts[i]``.
    Deterministic.
    """
    everyone = range(len(sizes))
    orders = [sorted(everyone, key=lambda i: (offsets[i], i)) for offsets in starts]
    orders.append(sorted(everyone, key=lambda i: (-sizes[i], i)))
    orders.append(sorted(everyone, key=lambda i: (-len(conflicts[i]), -sizes[i], i)))

    def placed(order: Sequence[int]) -> tuple[int, list[int]]:
        offsets = _first_fit(sizes, alignments, conflicts, order)
        return max((offsets[i] + sizes[i] for i in everyone), default=0), offsets

    (arena, offsets), order = min(
        ((placed(o), o) for o in orders), key=lambda placement: placement[0][0]
    )
    best, bound = (arena, offsets), max(sizes, default=0)
    rng = random.Random(seed)
    for _ in range(rounds):
        if best[0] == bound:
            break
        moved = _exchanged(order, offsets, sizes, conflicts, arena, rng)
        placement = placed(moved)
        if placement[0] <= arena:
            (arena, offsets), order = placement, moved
            best = min(best, placement, key=lambda f: f[0])
    return tuple(best[1])


def check_conflicts(
    sizes: Sequence[int], conflicts: Sequence[Collection[int]], offsets: Sequence[int]
) -> None:
    """Raise :class:`CheckError` if two buffers that conflict share a byte."""
    for i, near in enumerate(conflicts):
        for j in near:
            if offsets[i] < offsets[j] + sizes[j] and offsets[j] < offsets[i] + sizes[i]:
                raise CheckError(
                    f"buffers {i} and {j} conflict, but share bytes at offsets {offsets[i]} and "
                    f"{offsets[j]}"
                )


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
    """Return the order with a buffer near the top exchanged with, or moved before, an earlier."""
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
