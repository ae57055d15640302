"""Placement in several memories: assigns each buffer to a region.

The first objective is the cost: the sum of each buffer's size times the rank of its region among
its allowed regions (0 for the best). The second is the arena of each region. The search over
assignments is depth first: largest buffer first, best region first. A branch ends if its cost is
not below the best cost, or if a step exceeds a capacity. An assignment is accepted only after the
buffers of each region with a capacity have been placed within it. If the live bytes of a step
exceed the sum of all capacities, there is no assignment.
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
    """The best assignment so far.

    ``region_of``: the region of each buffer that needs memory, None without an assignment.
    ``proved``: whether the cost is minimal, or no assignment exists. ``offsets``: the offsets, if
    the assignment is from first fit.
    """

    region_of: tuple[int, ...] | None = None
    cost: int = 0
    proved: bool = True
    nodes: int = 0
    offsets: tuple[int, ...] = ()
    first: "Assignment | None" = None
    """The assignment of first fit, with its offsets."""


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
    """Return the indices of the regions that may hold ``buffer``, best first."""
    names = [region.name for region in regions]
    for name in buffer.regions:
        if name not in names:
            raise InputError(
                f"buffer {buffer.name!r} lists the unknown region {name!r}; the options define "
                f"{', '.join(names)}"
            )
    return [names.index(name) for name in buffer.regions] or list(range(len(regions)))


def assign(problem: PlacementProblem, options: PlanOptions, deadline: float | None) -> Assignment:
    """Search for the assignment with the least cost, and return the best one at the deadline."""
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
    """Return whether the live bytes of a step exceed the sum of all capacities."""
    capacities = [region.capacity_bytes for region in regions]
    most = sum(c for c in capacities if c is not None)
    return None not in capacities and int(problem.load.max(initial=0)) > most


def _greedy(search: _Search) -> None:
    """Assign each buffer to the best region in which first fit can place it."""
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
    """Search depth first with an explicit stack of the buffers' next choices."""
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
    """Assign buffer ``i`` to ``region`` unless this exceeds a capacity; return whether it fits.

    Buffers that may overlap others do not count, so that the sum of sizes is a lower bound.
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
    """Return the buffers ``members`` of a region, without overlaps with other regions' buffers."""
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
