"""Places buffers by pairwise conflicts, for buffers that have no single live range.

A buffer may be live several times, such as the scratch of a kernel that is called twice. Then the
conflicts are not an interval graph, and planners that use live ranges would need too much memory.
Here an order of buffers determines a placement: each buffer is placed at the lowest offset at which
it is disjoint from its neighbours. If the buffers of a placement are placed again in the order of
their offsets, no buffer moves up, so a start never becomes worse. The search exchanges a buffer at
the top with an earlier buffer, as long as the arena does not grow.
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
    """Return an offset for each buffer; the arena is at most that of any placement in ``starts``.

    ``conflicts`` must be symmetric: buffer i must not share bytes with the buffers in
    ``conflicts[i]``. The result is deterministic.
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
    """Return ``order`` with a buffer near the top of the arena moved towards the front.

    It is exchanged with an earlier buffer, or moved right before it.
    """
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
