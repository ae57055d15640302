"""Placement in several memories: a region for each buffer, and its offset there.

The first objective is the cost: each buffer's size times the rank of its region among its allowed
ones (0 for the best). Then the arena of each region is minimised. The assignment is searched depth
first, largest buffer first, best region first. A branch ends if its cost is no better than the best
known, or if a step exceeds a capacity. A full assignment counts only once every region with a
capacity is packed. If a step needs more than all capacities together, no assignment exists.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tvm_serenity.errors import InputError
from tvm_serenity.graph.arrays import Ints
from tvm_serenity.plan.buffers import Buffer, Region
from tvm_serenity.plan.fits import fits
from tvm_serenity.plan.greedy import Shelf
from tvm_serenity.plan.problem import PlacementProblem, prepare
from tvm_serenity.plan.result import PlanOptions


@dataclass
class Assignment:
    """The best assignment so far: a region per costing buffer, or None, with its proof status.

    ``offsets`` are the buffers' offsets, if first fit made the assignment.
    """

    region_of: tuple[int, ...] | None = None
    cost: int = 0
    proved: bool = True
    nodes: int = 0
    offsets: tuple[int, ...] = ()
    first: "Assignment | None" = None
    """The assignment by first fit, with its offsets."""


@dataclass
class _Search:
    problem: PlacementProblem
    regions: tuple[Region, ...]
    options: PlanOptions
    deadline: float | None
    choices: list[list[int]]
    order: list[int]
    load: list[Ints]
    best: Assignment = field(default_factory=Assignment)

    def late(self) -> bool:
        return self.deadline is not None and time.perf_counter() >= self.deadline


def choices_of(buffer: Buffer, regions: Sequence[Region]) -> list[int]:
    """Return the indices of the regions a buffer may live in, best first."""
    names = [region.name for region in regions]
    for name in buffer.regions:
        if name not in names:
            raise InputError(
                f"buffer {buffer.name!r} lists the unknown region {name!r}; the options define "
                f"{', '.join(names)}"
            )
    return [names.index(name) for name in buffer.regions] or list(range(len(regions)))


def assign(problem: PlacementProblem, options: PlanOptions, deadline: float | None) -> Assignment:
    """Return a region for each costing buffer; ``proved`` if the cost is least (or none fits)."""
    regions = options.regions
    choices = [choices_of(problem.buffers[i], regions) for i in problem.index]
    if _too_much(problem, regions):
        return Assignment()
    search = _Search(
        problem,
        regions,
        options,
        deadline,
        choices,
        [int(i) for i in np.argsort(-problem.size, kind="stable")],
        [np.zeros(problem.sections, dtype=np.int64) for _ in regions],
    )
    _greedy(search)
    if search.best.region_of is None or search.best.cost > 0:
        _descend(search)
    return search.best


def _too_much(problem: PlacementProblem, regions: Sequence[Region]) -> bool:
    """Return whether some step needs more than the capacities of all regions together."""
    capacities = [region.capacity_bytes for region in regions]
    most = sum(c for c in capacities if c is not None)
    return None not in capacities and int(problem.load.max(initial=0)) > most


def _greedy(search: _Search) -> None:
    """Assign each buffer to the best region where first fit finds a place."""
    p, chosen, cost = search.problem, [0] * len(search.order), 0
    offsets = [0] * len(search.order)
    shelves = [Shelf(p) for _ in search.regions]
    for i in sorted(search.order, key=lambda i: p.fixed[i] < 0):
        for rank, r in enumerate(search.choices[i]):
            at = int(p.fixed[i]) if p.fixed[i] >= 0 else shelves[r].fit(i)
            free = p.fixed[i] < 0 or shelves[r].clear(i, at)
            capacity = search.regions[r].capacity_bytes
            if free and (capacity is None or at + int(p.size[i]) <= capacity):
                shelves[r].add(i, at)
                chosen[i], offsets[i], cost = r, at, cost + rank * int(p.size[i])
                break
        else:
            return
    first = Assignment(tuple(chosen), cost, offsets=tuple(offsets))
    search.best = replace(first, first=first)


def _descend(search: _Search) -> None:
    """Search depth first with an explicit stack; ``ranks[k]`` is the k-th buffer's next choice."""
    p, best = search.problem, search.best
    chosen = [-1] * len(search.order)
    ranks, costs = [0], [0]
    while ranks:
        depth = len(ranks) - 1
        if depth == len(search.order):
            if _packs(search, chosen) and (best.region_of is None or costs[-1] < best.cost):
                best.region_of, best.cost = tuple(chosen), costs[-1]
                best.offsets = ()
            ranks.pop(), costs.pop()
            continue
        i = search.order[depth]
        _leave(search, chosen, i)
        if search.late():
            best.proved = False
            return
        best.nodes += 1
        if ranks[-1] == len(search.choices[i]):
            ranks.pop(), costs.pop()
            continue
        cost = costs[-1] + ranks[-1] * int(p.size[i])
        region = search.choices[i][ranks[-1]]
        ranks[-1] += 1
        if (best.region_of is None or cost < best.cost) and _enter(search, chosen, i, region):
            ranks.append(0)
            costs.append(cost)


def _enter(search: _Search, chosen: list[int], i: int, region: int) -> bool:
    """Assign a buffer to a region, unless a capacity is exceeded; return whether it fits.

    Buffers that may share bytes are left out of the load, so that it stays a lower bound.
    """
    p, capacity = search.problem, search.regions[region].capacity_bytes
    life = slice(p.lower[i], p.upper[i])
    size = 0 if p.shares(i) else int(p.size[i])
    if (
        capacity is not None
        and max(int(p.size[i]), int(search.load[region][life].max()) + size) > capacity
    ):
        return False
    search.load[region][life] += size
    chosen[i] = region
    return True


def _leave(search: _Search, chosen: list[int], i: int) -> None:
    if chosen[i] >= 0:
        p = search.problem
        size = 0 if p.shares(i) else int(p.size[i])
        search.load[chosen[i]][p.lower[i] : p.upper[i]] -= size
        chosen[i] = -1


def part(problem: PlacementProblem, members: Sequence[int]) -> list[Buffer]:
    """Return the buffers of one region, without permissions to overlap across regions."""
    buffers = [problem.buffers[problem.index[i]] for i in members]
    names = {buffer.name for buffer in buffers}
    return [b if b.may_overlap in names else replace(b, may_overlap=None) for b in buffers]


def _packs(search: _Search, chosen: Sequence[int]) -> bool:
    for r, region in enumerate(search.regions):
        if region.capacity_bytes is None:
            continue
        inside = prepare(
            part(search.problem, [i for i, c in enumerate(chosen) if c == r]),
            search.options.alignment,
        )
        left = None if search.deadline is None else max(0.01, search.deadline - time.perf_counter())
        verdict = fits(inside, region.capacity_bytes, search.options, left)
        if verdict is None:
            search.best.proved = False
        if not verdict:
            return False
    return True
