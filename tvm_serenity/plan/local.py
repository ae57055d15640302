"""Local search over placement orders in plain Python: the fallback of the native search.

An order of buffers determines the placement by first fit. The search moves a buffer at the top of
the arena, or right below such a buffer, towards the front of the order, and keeps the change if the
arena does not grow.
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
    """Improve ``offsets``; return the best offsets and whether a limit ended the search.

    ``goal``: the arena size at which the search ends. ``steps``: limit on the number of placements
    of single buffers.
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
    """Return a buffer that ends at the top of the arena, or a buffer a few levels below one."""
    ends = offsets + problem.size
    pick = dice.choice([int(i) for i in np.flatnonzero(ends == ends.max())])
    for _ in range(dice.randrange(4)):
        meets = (problem.lower < problem.upper[pick]) & (problem.upper > problem.lower[pick])
        below = np.flatnonzero(meets & (ends == offsets[pick]))
        if not below.size:
            break
        pick = int(below[0])
    return pick
