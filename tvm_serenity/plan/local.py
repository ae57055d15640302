"""Local search over placement orders in plain Python: the fallback of the native search.

The order determines the result of first fit. A buffer at the peak, or right below one, moves
towards the front of the order; the change is kept if the arena does not grow.
"""

import random
import time
from math import inf

import numpy as np

from tvm_serenity.graph.arrays import Ints
from tvm_serenity.plan.greedy import arena_of, place_in_order
from tvm_serenity.plan.problem import PlacementProblem

IDLE_ROUNDS = 300


def improve(
    problem: PlacementProblem,
    offsets: Ints,
    goal: int,
    seed: int,
    deadline: float | None,
    steps: int | None = None,
) -> tuple[Ints, bool]:
    """Return offsets no worse than given, and whether a limit ended the search.

    ``steps`` counts placements of single buffers.
    """
    dice = random.Random(seed)
    order = [int(i) for i in np.lexsort((-problem.size, offsets))]
    best = now = offsets
    idle, left = 0, inf if steps is None else steps
    while idle < IDLE_ROUNDS and arena_of(problem, best) > goal:
        late = deadline is not None and time.perf_counter() >= deadline
        if late or left <= 0:
            return best, True
        left -= len(order)
        moved = list(order)
        at = moved.index(_bottleneck(problem, now, dice))
        moved.insert(dice.randrange(at + 1), moved.pop(at))
        tried = place_in_order(problem, moved)
        idle += 1
        if arena_of(problem, tried) <= arena_of(problem, now):
            order, now = moved, tried
        if arena_of(problem, now) < arena_of(problem, best):
            best, idle = now, 0
    return best, False


def _bottleneck(problem: PlacementProblem, offsets: Ints, dice: random.Random) -> int:
    """Return a buffer that ends at the peak, or one a few levels below it."""
    ends = offsets + problem.size
    pick = dice.choice([int(i) for i in np.flatnonzero(ends == ends.max())])
    for _ in range(dice.randrange(4)):
        meets = (problem.lower < problem.upper[pick]) & (problem.upper > problem.lower[pick])
        below = np.flatnonzero(meets & (ends == offsets[pick]))
        if not below.size:
            break
        pick = int(below[0])
    return pick
