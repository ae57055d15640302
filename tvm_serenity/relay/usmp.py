"""USMP's algorithm ``serenity``: our planner for ahead-of-time code, registered on import.

``PassContext(config={"tir.usmp.enable": True, "tir.usmp.custom_algorithm": "serenity"})``. USMP
asks for the placement of tensors, kernel allocations and constants, each with its size, its
alignment, its candidate pools and its conflicting buffers.
"""

from collections.abc import Sequence
from typing import Any

import tvm
from tvm.ir.memory_pools import PoolInfo
from tvm.tir.usmp.utils import BufferInfo, PoolAllocation

from tvm_serenity.errors import InputError
from tvm_serenity.plan import Buffer, Plan, PlanOptions, Region, plan
from tvm_serenity.plan.conflicts import check_conflicts, place_by_conflicts
from tvm_serenity.plan.intervals import are_exact, intervals_of

NAME = "serenity"
OWN = ("greedy_by_size", "greedy_by_conflicts", "hill_climb")
"""USMP's own algorithms."""

TIME_LIMIT_S = 5.0


@tvm.register_func(f"tir.usmp.algo.{NAME}", override=True)
def allocate(infos: Sequence[Any], pressure: int) -> dict[Any, Any]:
    """Return a pool and an offset for each of USMP's buffers.

    The result never needs more bytes of a pool than USMP's own algorithms do, and never exceeds a
    pool's size. Raises :class:`InputError` if the pools are too small.
    """
    result: dict[Any, Any] = {}
    groups: dict[tuple[str, ...], list[Any]] = {}
    for info in infos:
        groups.setdefault(tuple(str(p.pool_name) for p in info.pool_candidates), []).append(info)
    for together in _components(list(groups)):
        members = [info for names in together for info in groups[names]]
        result.update(_placed(_Wanted(sorted(members, key=_key)), pressure))
    return result


class _Wanted:
    """The buffers of a group of pools, with their conflicts and live ranges."""

    def __init__(self, infos: Sequence[Any]) -> None:
        self.infos = infos
        number = {info: i for i, info in enumerate(infos)}
        near: list[set[int]] = [set() for _ in infos]
        for i, info in enumerate(infos):
            for j in (number[c] for c in info.conflicts if c in number):
                near[i].add(j)
                near[j].add(i)
        self.conflicts = near
        self.ranges = intervals_of(near)
        self.sizes = [int(info.size_bytes) for info in infos]
        self.alignments = [int(info.alignment) for info in infos]
        self.pools = {str(p.pool_name): p for info in infos for p in info.pool_candidates}

    def starts(self, pressure: int) -> list[list[int]]:
        """Return the placements of USMP's own algorithms."""
        result = []
        for name in OWN:
            found = tvm.get_global_func(f"tir.usmp.algo.{name}")(list(self.infos), pressure)
            result.append([int(found[info].byte_offset) for info in self.infos])
        return result


def _placed(wanted: _Wanted, pressure: int) -> dict[Any, Any]:
    found = _planned(wanted)
    names, offsets = found.regions, found.offsets
    if len(wanted.pools) == 1 and not are_exact(wanted.conflicts, wanted.ranges):
        starts = [*wanted.starts(pressure), *([list(offsets)] if offsets else [])]
        offsets = place_by_conflicts(wanted.sizes, wanted.alignments, wanted.conflicts, starts)
        check_conflicts(wanted.sizes, wanted.conflicts, offsets)
        ((name, pool),) = wanted.pools.items()
        names = (name,) * len(offsets)
        capacity = _capacity(pool)
        ends = (o + s for o, s in zip(offsets, wanted.sizes, strict=True))
        if capacity is not None and max(ends, default=0) > capacity:
            offsets = ()
    if len(offsets) != len(wanted.infos):
        raise InputError(f"the pools {', '.join(wanted.pools)} are too small: {found}")
    return {
        info: PoolAllocation(wanted.pools[name], offset)
        for info, name, offset in zip(wanted.infos, names, offsets, strict=True)
    }


def _planned(wanted: _Wanted) -> Plan:
    """Return our planner's placement of the live ranges."""
    buffers = [
        Buffer(
            f"{info.name_hint}_{i}",
            *wanted.ranges[i],
            wanted.sizes[i],
            wanted.alignments[i],
            regions=tuple(str(p.pool_name) for p in info.pool_candidates),
        )
        for i, info in enumerate(wanted.infos)
    ]
    regions = tuple(Region(name, _capacity(pool)) for name, pool in wanted.pools.items())
    return plan(buffers, "auto", PlanOptions(time_limit_s=TIME_LIMIT_S, regions=regions))


def _capacity(pool: PoolInfo) -> int | None:
    size = int(pool.size_hint_bytes)
    return size if size >= 0 else None


def _components(groups: Sequence[tuple[str, ...]]) -> list[list[tuple[str, ...]]]:
    """Return groups of candidate pools, merged if they share a pool."""
    result: list[list[tuple[str, ...]]] = []
    for names in groups:
        near = [c for c in result if any(set(names) & set(other) for other in c)]
        result = [c for c in result if c not in near]
        result.append([names, *(other for c in near for other in c)])
    return result


def _key(info: BufferInfo) -> tuple[str, int, int]:
    """Return a sort key that does not depend on memory addresses."""
    return str(info.name_hint), int(info.size_bytes), len(info.conflicts)
